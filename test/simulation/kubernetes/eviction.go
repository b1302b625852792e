package kubernetes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/albertofaria/pav/test/simulation/world"
)

// Evict asks the API server to evict a pod. It reports whether a PodDisruptionBudget forbids the eviction. If none
// does, the pod is deleted with its grace period.
func Evict(w *world.World, by string, pod *corev1.Pod) (refused bool) {
	if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
		for _, budget := range world.Objects[*policyv1.PodDisruptionBudget](w.Store) {
			if protects(w, budget, pod) {
				w.Counts["evictions refused"]++
				return true
			}
		}
	}
	w.Counts["evictions"]++
	_ = w.Store.Delete(by, w.Store.KeyOf(pod), preconditions(pod.UID), nil)
	return false
}

// protects reports whether fewer pods than a budget demands would be left without a pod.
func protects(w *world.World, budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		panic(err) // only PaV's own budgets exist
	}
	isRunning := func(p *corev1.Pod) bool {
		return p.Namespace == budget.Namespace && selector.Matches(labels.Set(p.Labels)) && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
	}
	if !isRunning(pod) {
		return false
	}
	others := slices.DeleteFunc(world.Objects[*corev1.Pod](w.Store), func(p *corev1.Pod) bool { return !isRunning(p) || p.UID == pod.UID })
	return len(others) < budget.Spec.MinAvailable.IntValue()
}

// EvictOne makes kubelet evict one of its pods, as it does when the node is short of memory or disk.
func (n *Node) EvictOne() {
	pods := slices.DeleteFunc(world.Objects[*corev1.Pod](n.World.Store), func(p *corev1.Pod) bool { return p.Spec.NodeName != n.Name || isOver(p) })
	if len(pods) > 0 && n.Up {
		n.Evict(pods[n.World.Rand.IntN(len(pods))])
	}
}

// Evict makes kubelet evict a pod of its node.
func (n *Node) Evict(pod *corev1.Pod) {
	n.World.Counts["pods evicted by kubelet"]++
	n.World.Notef("kubelet on %s evicts %s/%s", n.Name, pod.Namespace, pod.Name)
	n.evicted[pod.UID] = true
}

// tellEviction adds to the status of a pod that kubelet evicted it. Of a pod that had not started yet, kubelet reports
// that its container could not be located. Sometimes it also loses sight of a container that it has killed, and reports
// a restart that never was.
func (n *Node) tellEviction(p *corev1.Pod) {
	p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: memory."
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, LastTransitionTime: metav1.Now(),
	})
	lost := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Terminated: new(unlocated)}}
	switch {
	case len(p.Status.ContainerStatuses) == 0:
		p.Status.ContainerStatuses = []corev1.ContainerStatus{lost}
	case n.World.Rand.IntN(2) == 0:
		lost.RestartCount, lost.LastTerminationState.Terminated = 1, new(unlocated)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{lost}
	}
}

// unlocated is how kubelet reports the end of a container that it does not find.
var unlocated = corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown", Message: "The container could not be located when the pod was terminated"}
