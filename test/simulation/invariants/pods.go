package invariants

import corev1 "k8s.io/api/core/v1"

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
}

// exitIsTold reports whether kubelet has said how the container of a pod has ended.
func exitIsTold(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil {
			return ended.Reason != "ContainerStatusUnknown"
		}
	}
	return false
}
