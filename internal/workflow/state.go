package workflow

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// State is the state of a workflow pod.
type State int

// The states of a workflow pod.
const (
	// Absent means that there is no such pod.
	Absent State = iota

	// Running means that containers of the pod run, or may still start.
	Running

	// Stopping means that the pod is being deleted and containers of it may still run.
	Stopping

	// Succeeded means that all containers have succeeded, and the pod was not deleted before that.
	Succeeded

	// Failed means that no container runs any more, and the pod did not succeed. A pod that was deleted while it ran
	// has failed, whatever exit codes its containers have.
	Failed
)

// IsOver reports whether the pod has ended, and has no effect any more.
func (s State) IsOver() bool { return s == Succeeded || s == Failed }

// Observe returns the state of a pod; nil means that there is none. A pod whose node is lost has not ended: only its
// kubelet, or the deletion of its node, shows that its containers no longer run.
func Observe(pod *corev1.Pod) State {
	switch {
	case pod == nil:
		return Absent
	case pod.Status.Phase == corev1.PodSucceeded && pod.DeletionTimestamp == nil:
		return Succeeded
	case pod.Status.Phase == corev1.PodSucceeded:
		return Failed
	case pod.Status.Phase == corev1.PodFailed:
		return Failed
	case pod.DeletionTimestamp != nil && pod.Spec.NodeName == "":
		// It was never bound to a node, so no kubelet ever ran it.
		return Failed
	case pod.DeletionTimestamp != nil:
		return Stopping
	default:
		return Running
	}
}

// Judge returns the state of a pod as Observe does, but knows the outcome about a second earlier if it can: kubelet
// reports the exit codes of containers at once, and the phase after it has looked at the containers once more. No
// container of a pod that Judge calls over runs or will run. But kubelet still works on the pod, and may even change
// its mind: a pod that it evicts becomes Failed, whatever its containers made of that. So the pod must not be deleted
// before Observe agrees.
func Judge(pod *corev1.Pod) State {
	if state := Observe(pod); state != Running || pod.Status.Phase == corev1.PodUnknown || !judgedByContainers(pod) {
		return state
	}
	succeeded := true
	for i := range pod.Status.ContainerStatuses {
		succeeded = succeeded && pod.Status.ContainerStatuses[i].State.Terminated.ExitCode == 0
	}
	switch {
	case succeeded:
		return Succeeded
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return Failed
	default:
		return Running // kubelet restarts what has failed
	}
}

// judgedByContainers reports whether all containers of a pod have ended by themselves, and their exit codes alone make
// its phase.
func judgedByContainers(pod *corev1.Pod) bool {
	spec, status := &pod.Spec, &pod.Status
	if spec.RestartPolicy != corev1.RestartPolicyNever && spec.RestartPolicy != corev1.RestartPolicyOnFailure || endedAtDeadline(pod) {
		return false
	}
	if len(spec.Containers) == 0 || !haveEnded(spec.Containers, status.ContainerStatuses) || !haveEnded(spec.InitContainers, status.InitContainerStatuses) {
		return false
	}
	if hasOwnPolicies(spec) {
		return false
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		// The exit code of a sidecar does not count.
		if !isSidecar(c) && statusOf(status.InitContainerStatuses, c.Name).State.Terminated.ExitCode != 0 {
			return false
		}
	}
	return true
}

// hasOwnPolicies reports whether a container may be restarted whatever the pod's policy is, sidecars excepted, or may
// restart others.
func hasOwnPolicies(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return c.RestartPolicy != nil || len(c.RestartPolicyRules) > 0 }) ||
		slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool {
			return c.RestartPolicy != nil && !isSidecar(&c) || len(c.RestartPolicyRules) > 0
		})
}

// isSidecar reports whether an init container runs as long as the pod's other containers.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// statusUnknown is kubelet's reason for a container that it has lost: its exit code is kubelet's invention.
const statusUnknown = "ContainerStatusUnknown"

// haveEnded reports whether kubelet has seen all of the containers end.
func haveEnded(containers []corev1.Container, statuses []corev1.ContainerStatus) bool {
	for i := range containers {
		status := statusOf(statuses, containers[i].Name)
		if status == nil || status.State.Terminated == nil || status.State.Terminated.Reason == statusUnknown {
			return false
		}
	}
	return len(statuses) == len(containers)
}

func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

// endedAtDeadline reports whether kubelet may have stopped the pod because its time was up, whatever exit code its
// containers made of that. All times are of the node's clock, and have whole seconds.
func endedAtDeadline(pod *corev1.Pod) bool {
	deadline, start := pod.Spec.ActiveDeadlineSeconds, pod.Status.StartTime
	if deadline == nil {
		return false
	}
	if start == nil {
		return true
	}
	end := start.Add(time.Duration(*deadline-1) * time.Second)
	for status := range containers(pod) {
		if ended := status.State.Terminated; ended != nil && !ended.FinishedAt.Time.Before(end) {
			return true
		}
	}
	return false
}

// KeepForJudge returns a pod's specification with only what Judge needs.
func KeepForJudge(spec *corev1.PodSpec) corev1.PodSpec {
	keep := func(containers []corev1.Container) []corev1.Container {
		var kept []corev1.Container
		for i := range containers {
			c := &containers[i]
			kept = append(kept, corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules})
		}
		return kept
	}
	return corev1.PodSpec{
		NodeName: spec.NodeName, RestartPolicy: spec.RestartPolicy, ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds,
		InitContainers: keep(spec.InitContainers), Containers: keep(spec.Containers),
	}
}
