package kubernetes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/test/simulation/world"
)

// Collector is the garbage collector and the pod garbage collector. It deletes objects whose owners are gone, and pods
// whose nodes are gone.
type Collector struct {
	World *world.World

	// Kinds are the kinds of objects that have owners.
	Kinds []string
}

// Choices implements world.Actor.
func (c *Collector) Choices(add func(world.Choice)) {
	uids := c.owners()
	for _, kind := range c.Kinds {
		for _, object := range c.World.Store.All(kind) {
			key := c.World.Store.KeyOf(object)
			if object.GetDeletionTimestamp() == nil && len(object.GetOwnerReferences()) > 0 && !owned(object, uids) {
				uid := object.GetUID()
				add(world.Choice{What: "kubernetes collects " + key.String(), Do: func() {
					_ = c.World.Store.Delete(by, key, preconditions(uid), nil)
				}})
			}
		}
	}
	for _, pod := range world.Objects[*corev1.Pod](c.World.Store) {
		if c.lost(pod) {
			add(world.Choice{What: "kubernetes ends lost pod " + pod.Namespace + "/" + pod.Name, Do: func() { c.end(pod) }})
		}
	}
}

// owners returns the UIDs of all existing objects that can be owners.
func (c *Collector) owners() map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, kind := range []string{"PavVolume", "PavStage", "PavSnapshot", "PavProvisioner", "PersistentVolume"} {
		for _, object := range c.World.Store.All(kind) {
			uids[object.GetUID()] = true
		}
	}
	return uids
}

func owned(object client.Object, uids map[types.UID]bool) bool {
	for _, ref := range object.GetOwnerReferences() {
		if uids[ref.UID] || ref.Kind == "DaemonSet" { // DaemonSets are not simulated, only their pods
			return true
		}
	}
	return false
}

// lost reports whether no kubelet will end a pod: its node is gone or has the out-of-service taint, or the pod is under
// deletion and has no node.
func (c *Collector) lost(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 0) > 0
	}
	node := world.Object[*corev1.Node](c.World.Store, "", pod.Spec.NodeName)
	gone := node == nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
	return gone && (!isOver(pod) || pod.DeletionTimestamp == nil)
}

func (c *Collector) end(pod *corev1.Pod) {
	if !isOver(pod) {
		change(c.World, pod, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists", LastTransitionTime: metav1.Now(),
			})
		})()
	}
	_ = c.World.Store.Delete(by, c.World.Store.KeyOf(pod), preconditions(pod.UID), new(int64(0)))
}
