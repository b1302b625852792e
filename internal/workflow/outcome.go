package workflow

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Failure returns why a failed pod failed. PodError is what the pod wrote to /pav/error, or empty.
// The message ends with what the pod said last and with the command that shows its logs.
func Failure(workflow string, pod *corev1.Pod, podError string) *pavv1.WorkflowFailure {
	failure := &pavv1.WorkflowFailure{
		Workflow:     workflow,
		PodNamespace: pod.Namespace,
		PodName:      pod.Name,
		Time:         metav1.Now(),
	}
	what := "failed"
	if reason := pod.Status.Reason; reason != "" {
		what = "failed: " + strings.TrimSpace(reason+" "+pod.Status.Message)
	}
	words := strings.TrimSpace(podError)

	if status := firstFailed(pod); status != nil {
		ended := status.State.Terminated
		failure.ExitCode = &ended.ExitCode
		what = fmt.Sprintf("failed: container %q ended with exit code %d", status.Name, ended.ExitCode)
		if ended.Reason != "" && ended.Reason != "Error" {
			what += " (" + ended.Reason + ")"
		}
		if words == "" {
			words = lastLines(ended.Message)
		}
	}

	failure.Message = fmt.Sprintf("pod %s/%s %s", pod.Namespace, pod.Name, what)
	if words != "" {
		failure.Message += ": " + words
	}
	failure.Message += fmt.Sprintf("; see kubectl logs -n %s %s --all-containers", pod.Namespace, pod.Name)
	return failure
}

func firstFailed(pod *corev1.Pod) *corev1.ContainerStatus {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if ended := statuses[i].State.Terminated; ended != nil && ended.ExitCode != 0 {
				return &statuses[i]
			}
		}
	}
	return nil
}

// lastLines returns the end of what a container logged, on one line and at most 512 bytes long.
func lastLines(log string) string {
	const limit = 512
	log = strings.TrimSpace(strings.ToValidUTF8(log, "?"))
	if len(log) > limit {
		log = "…" + strings.ToValidUTF8(log[len(log)-limit:], "")
	}
	return strings.Join(strings.FieldsFunc(log, func(r rune) bool { return r == '\n' || r == '\r' }), " | ")
}

// Waiting returns what keeps a pod from running, in words, or nothing where nothing is known to.
func Waiting(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s/%s is not scheduled: %s", pod.Namespace, pod.Name, condition.Message)
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			waiting := status.State.Waiting
			if waiting == nil || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" {
				continue
			}
			text := fmt.Sprintf("pod %s/%s, container %q: %s", pod.Namespace, pod.Name, status.Name, waiting.Reason)
			if waiting.Message != "" {
				text += ": " + waiting.Message
			}
			return text
		}
	}
	return ""
}
