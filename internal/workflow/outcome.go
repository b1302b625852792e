package workflow

import (
	"fmt"
	"iter"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// State is how far a workflow pod is.
type State int

// The states of a workflow pod.
const (
	// Absent means that there is no such pod.
	Absent State = iota

	// Running means that containers of the pod run or may run yet.
	Running

	// Stopping means that the pod is being deleted and containers of it may still run.
	Stopping

	// Succeeded means that all containers have ended well, by themselves.
	Succeeded

	// Failed means that no container runs any more, and that the pod did not end well: also that it
	// was stopped, whatever its containers made of that.
	Failed
)

// Observe returns the state of a pod, which is nil where there is none. A pod whose node is lost is
// not over: only its kubelet, or its node's end, tells that its containers no longer run.
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
		// Never bound to a node, so that no kubelet ever ran it.
		return Failed
	case pod.DeletionTimestamp != nil:
		return Stopping
	default:
		return Running
	}
}

// Failure returns why a failed pod failed. PodError is what the pod wrote to /pav/error, or empty. The
// message, which users of claims read, ends with that and with the command that shows the pod's logs; what
// the pod logged is not in it. Whoever records the failure gives it its time.
func Failure(workflow string, pod *corev1.Pod, podError string) *pavv1.WorkflowFailure {
	failure := &pavv1.WorkflowFailure{
		Workflow:     workflow,
		PodNamespace: pod.Namespace,
		PodName:      pod.Name,
	}
	what, next := "failed", ": "
	if reason := pod.Status.Reason; reason != "" {
		what += ": " + shorten(oneLine(reason+" "+pod.Status.Message), maxWords)
		next = "; "
	}
	words := shorten(strings.TrimSpace(strings.ToValidUTF8(podError, "?")), MaxError)

	if status := firstFailed(pod); status != nil {
		ended := status.State.Terminated
		failure.ExitCode = &ended.ExitCode
		what += fmt.Sprintf("%scontainer %q %s", next, status.Name, howEnded(ended))
		failure.Log = lastLines(ended.Message)
	}

	failure.Message = fmt.Sprintf("pod %s/%s %s", pod.Namespace, pod.Name, what)
	if words != "" {
		failure.Message += ": " + words
	}
	failure.Message += fmt.Sprintf("; see kubectl logs -n %s %s --all-containers", pod.Namespace, pod.Name)
	return failure
}

func firstFailed(pod *corev1.Pod) *corev1.ContainerStatus {
	for status := range containers(pod) {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return status
		}
	}
	return nil
}

// howEnded says how a container ended.
func howEnded(ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", ended.ExitCode)
	if ended.Reason != "" && ended.Reason != "Error" {
		text += " (" + ended.Reason + ")"
	}
	return text
}

// maxWords is how many bytes of what others say, such as kubelets, runtimes and logs, a message has.
const maxWords = 512

// lastLines returns the end of what a container logged.
func lastLines(log string) string {
	const ellipsis = "…"
	log = oneLine(log)
	if len(log) > maxWords {
		log = ellipsis + strings.ToValidUTF8(log[len(log)-maxWords+len(ellipsis):], "")
	}
	return log
}

// shorten returns a text of so many bytes at most: the beginning, which says what is the matter, and
// the end, which says why.
func shorten(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	half := (limit - len(ellipsis)) / 2
	return strings.ToValidUTF8(text[:half], "") + ellipsis + strings.ToValidUTF8(text[len(text)-half:], "")
}

func oneLine(text string) string {
	lines := strings.FieldsFunc(strings.TrimSpace(strings.ToValidUTF8(text, "?")), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, " | ")
}

// Waiting returns what keeps a pod from running, in words, or nothing where nothing is known to: also
// a container that is being restarted because it failed.
func Waiting(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s/%s is not scheduled: %s", pod.Namespace, pod.Name, shorten(oneLine(condition.Message), maxWords))
		}
	}
	for status := range containers(pod) {
		if waiting := status.State.Waiting; waiting != nil && obstructs(waiting.Reason) {
			return fmt.Sprintf("pod %s/%s, container %q: %s", pod.Namespace, pod.Name, status.Name, shorten(obstacle(status), maxWords))
		}
	}
	return ""
}

// obstructs reports whether a container that waits for this reason waits for somebody to do something.
// Other reasons are those of every pod on its way, and no reason is no news.
func obstructs(reason string) bool {
	return reason != "" && reason != "ContainerCreating" && reason != "PodInitializing"
}

// obstacle returns the reason and the message for which a container waits, and how it ended if it has run.
func obstacle(status *corev1.ContainerStatus) string {
	text := status.State.Waiting.Reason
	if message := oneLine(status.State.Waiting.Message); message != "" {
		text += ": " + message
	}
	if ended := status.LastTerminationState.Terminated; ended != nil {
		text += "; it " + howEnded(ended)
	}
	return text
}

// Started reports whether any container of a pod runs or has ever run, init containers too, as far as
// the kubelet has told. It may not have told yet, so that only a pod that never had a node, or whose
// kubelet said that it is over, has surely not started.
func Started(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	for status := range containers(pod) {
		// A container that ended may never have begun: the kubelet says so of those it lost sight of.
		// To doubt is to believe the worse.
		if ran(status) {
			return true
		}
	}
	return false
}

// ran reports whether a container runs or has run.
func ran(s *corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil || s.RestartCount > 0
}

// NeverRan reports whether no container of a pod that is over has ever run, by its kubelet's word. Of a
// container that was waiting, such as for the pod's volumes, the kubelet says in the end that it could not be
// located, and knows no ID of it. Where Kubernetes' garbage collector ended the pod, the kubelet said nothing.
func NeverRan(pod *corev1.Pod) bool {
	unlocated := false
	for status := range containers(pod) {
		s := *status
		if ended := s.State.Terminated; ended != nil && ended.Reason == "ContainerStatusUnknown" && ended.StartedAt.IsZero() && s.ContainerID == "" {
			s.State, unlocated = corev1.ContainerState{}, true
		}
		if ran(&s) {
			return false
		}
	}
	_, collected := Collected(pod)
	return pod.Status.Phase == corev1.PodFailed && (unlocated || !collected)
}

// Collected reports whether Kubernetes' garbage collector ended a pod because there was no node of its name, or one
// that is out of service, and when. A node of that name may be there again: its kubelet need not have heard of the pod.
func Collected(pod *corev1.Pod) (at time.Time, collected bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Reason == "DeletionByPodGC" {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// ReadyToStart returns the status of the condition that says that the sandbox and the volumes of a pod are
// ready, so that what is left before its containers start is their images; empty where nothing is told.
func ReadyToStart(pod *corev1.Pod) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReadyToStartContainers {
			return c.Status
		}
	}
	return ""
}

// StartOf returns when a pod that has started did, as well as that is known.
func StartOf(pod *corev1.Pod) time.Time {
	var start time.Time
	for status := range containers(pod) {
		for _, at := range startsOf(status) {
			if !at.IsZero() && (start.IsZero() || at.Before(start)) {
				start = at
			}
		}
	}
	switch {
	case !start.IsZero():
		return start
	case pod.Status.StartTime != nil:
		return pod.Status.StartTime.Time
	default:
		return pod.CreationTimestamp.Time
	}
}

func startsOf(status *corev1.ContainerStatus) (starts []time.Time) {
	if running := status.State.Running; running != nil {
		starts = append(starts, running.StartedAt.Time)
	}
	for _, ended := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
		if ended != nil {
			starts = append(starts, ended.StartedAt.Time)
		}
	}
	return starts
}

// containers returns what is known of the pod's containers, init containers first.
func containers(pod *corev1.Pod) iter.Seq[*corev1.ContainerStatus] {
	return func(yield func(*corev1.ContainerStatus) bool) {
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range statuses {
				if !yield(&statuses[i]) {
					return
				}
			}
		}
	}
}
