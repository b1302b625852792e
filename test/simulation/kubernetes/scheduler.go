package kubernetes

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Scheduler binds pods to nodes, and selects nodes for claims that wait for their first consumer.
type Scheduler struct{ World *world.World }

// Choices implements world.Actor.
func (s *Scheduler) Choices(add func(world.Choice)) {
	for _, pod := range world.Objects[*corev1.Pod](s.World.Store) {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || isOver(pod) {
			continue
		}
		if what, do := s.schedule(pod); do != nil {
			add(world.Choice{What: "the scheduler " + what + " " + pod.Namespace + "/" + pod.Name, Weight: 3, Do: do})
		}
	}
}

// schedule returns the scheduler's next action for a pod without a node.
func (s *Scheduler) schedule(pod *corev1.Pod) (string, func()) {
	nodes := s.nodesFor(pod)
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := world.Object[*corev1.PersistentVolumeClaim](s.World.Store, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		if claim == nil || claim.DeletionTimestamp != nil {
			return "", nil
		}
		if claim.Status.Phase == corev1.ClaimBound {
			if pv := world.Object[*corev1.PersistentVolume](s.World.Store, "", claim.Spec.VolumeName); pv != nil {
				nodes = slices.DeleteFunc(nodes, func(name string) bool {
					node := world.Object[*corev1.Node](s.World.Store, "", name)
					return pv.Spec.NodeAffinity != nil && !selects(pv.Spec.NodeAffinity.Required, node)
				})
			}
			continue
		}
		class := (&Volumes{World: s.World}).classOf(claim)
		if class == nil || !waits(class) || claim.Annotations[protocol.SelectedNode] != "" || len(nodes) == 0 {
			return "", nil
		}
		return "chooses a node for the claim of", change(s.World, claim, func(c *corev1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, protocol.SelectedNode, nodes[s.World.Rand.IntN(len(nodes))])
		})
	}
	if len(nodes) == 0 {
		if slices.ContainsFunc(pod.Status.Conditions, isUnschedulable) {
			return "", nil
		}
		return "cannot schedule", change(s.World, pod, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "no node fits", LastTransitionTime: metav1.Now(),
			}}
		})
	}
	return "binds", change(s.World, pod, func(p *corev1.Pod) {
		p.Spec.NodeName = nodes[s.World.Rand.IntN(len(nodes))]
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())}}
	})
}

func isUnschedulable(c corev1.PodCondition) bool {
	return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
}

// nodesFor returns the names of the nodes that the pod's tolerations and affinity allow.
func (s *Scheduler) nodesFor(pod *corev1.Pod) []string {
	var names []string
	for _, node := range world.Objects[*corev1.Node](s.World.Store) {
		if node.DeletionTimestamp == nil && allows(pod, node) {
			names = append(names, node.Name)
		}
	}
	return names
}

func allows(pod *corev1.Pod, node *corev1.Node) bool {
	tolerates := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Operator == corev1.TolerationOpExists && t.Key == "" })
	if !tolerates && (node.Spec.Unschedulable || len(node.Spec.Taints) > 0) {
		return false
	}
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	return selects(affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, node)
}

// selects reports whether a node selector matches a node. It supports only the kinds of selectors that PaV writes.
func selects(selector *corev1.NodeSelector, node *corev1.Node) bool {
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && !slices.Contains(field.Values, node.Name) {
				return false
			}
		}
		for _, expression := range term.MatchExpressions {
			if expression.Operator == corev1.NodeSelectorOpIn && !slices.Contains(expression.Values, node.Labels[expression.Key]) {
				return false
			}
		}
		return true
	})
}

func preconditions(uid types.UID) *metav1.Preconditions { return &metav1.Preconditions{UID: &uid} }
