package attempt

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/workflow"
)

// CannotStart reports whether the pod's slot is suspended, so that another pod can run meanwhile.
func CannotStart(now time.Time, pod *corev1.Pod) bool {
	return !workflow.Started(pod) && (workflow.Waiting(pod) != "" || unstartedFor(now, pod) >= startDelay)
}

// IsHung reports whether a pod hangs on its node for a reason that other nodes need not have: its kubelet does not
// answer, or cannot mount a volume of the pod.
func IsHung(now time.Time, pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || workflow.Started(pod) || workflow.Waiting(pod) != "" || unstartedFor(now, pod) < startDelay {
		return false
	}
	if workflow.ReadyToStart(pod) == corev1.ConditionFalse {
		return true
	}
	// A kubelet that has seen the pod sets the condition, unless that feature is disabled.
	return workflow.ReadyToStart(pod) == "" && pod.Status.StartTime == nil
}

// isGivenUp reports whether a pod of this age that has not started is deleted, so that another one can be tried.
func (a Attempt) isGivenUp(pod *corev1.Pod, age time.Duration) bool {
	if workflow.Started(pod) {
		return false
	}
	// No container ever ran, so there is nothing to revert, and the scheduler may choose another node.
	if a.SelectedNode && unschedulable(pod) {
		return age >= nodeTimeout
	}
	switch {
	case IsHung(a.Now, pod):
		return age >= startTimeout
	case workflow.Waiting(pod) == "" && workflow.ReadyToStart(pod) == corev1.ConditionTrue:
		// Another pod would only pull the images again from the beginning.
		return a.Contended && age >= pullTimeout
	default:
		// Other objects wait for the slot, and this pod may wait for one of them.
		return a.Contended && age >= startTimeout
	}
}

// unstartedFor returns how long a pod has not started: since it was bound to its node, or else since it was created.
func unstartedFor(now time.Time, pod *corev1.Pod) time.Duration {
	since := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return now.Sub(since)
}

func unschedulable(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}
