package workflow

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Failure returns why a failed pod failed. PodError is the text that the pod wrote to /pav/error, or "". The message,
// which users of claims read, ends with that text and with the command that shows the pod's logs; it does not have
// the logs. Of a grant or revocation pod, the failure has nothing else that its containers have written. The caller sets the time of the failure.
func Failure(workflow string, pod *corev1.Pod, podError string) *pavv1.WorkflowFailure {
	failure := &pavv1.WorkflowFailure{
		Workflow:     workflow,
		Reason:       pavv1.FailurePodFailed,
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
		if !PrintsSecrets(workflow) {
			failure.Log = lastLines(ended.Message)
		}
	}

	failure.Message = fmt.Sprintf("pod %s/%s %s", pod.Namespace, pod.Name, what)
	if words != "" {
		failure.Message += ": " + words
	}
	failure.Message += fmt.Sprintf("; see kubectl logs -n %s %s --all-containers", pod.Namespace, pod.Name)
	return failure
}

// UnexpectedError describes a pod that succeeded although it wrote a text to /pav/error, as a script may that goes on after a
// command of it has failed.
func UnexpectedError(pod *corev1.Pod, podError string) string {
	words := shorten(strings.TrimSpace(strings.ToValidUTF8(podError, "?")), MaxError)
	return fmt.Sprintf("pod %s/%s succeeded, but wrote to /pav/error: %s", pod.Namespace, pod.Name, words)
}

func firstFailed(pod *corev1.Pod) *corev1.ContainerStatus {
	for status := range containers(pod) {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return status
		}
	}
	return nil
}

// FailedByItself reports whether a pod is over because of the exit code of a container that nobody has stopped.
func FailedByItself(pod *corev1.Pod) bool {
	if Judge(pod) != Failed || pod.DeletionTimestamp != nil || pod.Status.Reason != "" || endedAtDeadline(pod) {
		return false
	}
	failed := firstFailed(pod)
	return failed != nil && (failed.State.Terminated.Reason == "" || failed.State.Terminated.Reason == "Error")
}

// howEnded describes how a container ended.
func howEnded(ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", ended.ExitCode)
	if ended.Reason != "" && ended.Reason != "Error" {
		text += " (" + ended.Reason + ")"
	}
	return text
}

// maxWords is how many bytes of the texts of kubelets, runtimes and logs a message has.
const maxWords = 512

// lastLines returns the end of a container's log.
func lastLines(log string) string {
	const ellipsis = "…"
	log = oneLine(log)
	if len(log) > maxWords {
		log = ellipsis + strings.ToValidUTF8(log[len(log)-maxWords+len(ellipsis):], "")
	}
	return log
}

// shorten returns a text of at most so many bytes: the beginning, which says what failed, and the end, which says
// why.
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

// Waiting returns the cause that keeps a pod from running, or "" if none is known. A container that is being
// restarted because it failed is a cause as well.
func Waiting(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s/%s is not scheduled: %s", pod.Namespace, pod.Name, shorten(oneLine(condition.Message), maxWords))
		}
	}
	for status := range containers(pod) {
		if waiting := status.State.Waiting; waiting != nil && obstructs(waiting.Reason) {
			return fmt.Sprintf("pod %s/%s, container %q: %s", pod.Namespace, pod.Name, status.Name, shorten(obstacle(status, PrintsSecrets(pod.Labels[pavv1.WorkflowLabel])), maxWords))
		}
	}
	return ""
}

// obstructs reports whether a container that waits for this reason cannot start without help. The other reasons, or
// none, are normal for a pod that is starting.
func obstructs(reason string) bool {
	return reason != "" && reason != "ContainerCreating" && reason != "PodInitializing"
}

// neverQuoting are the reasons why a container waits with whose messages kubelet never quotes a container, as it has not run. With
// PostStartHookError, for one, the message has what the hook has printed.
var neverQuoting = []string{
	"ErrImagePull", "ImagePullBackOff", "ImageInspectError", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable",
	"SignatureValidationFailed", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
}

// obstacle returns the reason and the message why a container waits, and how it ended if it has run. If the container is
// secretive, the message is left out if it may quote the container.
func obstacle(status *corev1.ContainerStatus, secretive bool) string {
	text := status.State.Waiting.Reason
	message := oneLine(status.State.Waiting.Message)
	if message != "" && (!secretive || slices.Contains(neverQuoting, text)) {
		text += ": " + message
	}
	if ended := status.LastTerminationState.Terminated; ended != nil {
		text += "; it " + howEnded(ended)
	}
	return text
}

// Started reports whether any container of a pod runs or has ever run, including init containers, as far as kubelet
// has reported. Kubelet may not have reported yet, so only a pod that never had a node, or whose kubelet reports that
// it has ended, has certainly not started.
func Started(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	for status := range containers(pod) {
		// A container that ended may never have started: kubelet also reports containers as ended that it has lost.
		// In doubt, it has started.
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

// NeverRan reports whether kubelet says that no container of a pod that has ended ever ran. Of a container that was
// waiting, such as for the pod's volumes, kubelet finally reports that it could not be located, without an ID. If
// Kubernetes' garbage collector ended the pod, kubelet reported nothing.
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

// Collected reports whether Kubernetes' garbage collector ended a pod because its node did not exist, or was out of
// service, and when. A node of that name may exist again: its kubelet may not know the pod.
func Collected(pod *corev1.Pod) (at time.Time, collected bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Reason == "DeletionByPodGC" {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

// ReadyToStart returns the status of the condition that the sandbox and the volumes of a pod are ready, so that only
// the images are missing before its containers start; "" if kubelet does not report it.
func ReadyToStart(pod *corev1.Pod) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReadyToStartContainers {
			return c.Status
		}
	}
	return ""
}

// StartOf returns when a pod has started, as far as that is known.
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

// containers returns the statuses of the pod's containers, init containers first.
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
