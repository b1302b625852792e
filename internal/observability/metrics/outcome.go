package metrics

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// Steps of records, values of the label step.
const (
	StepValidate = pavv1.WorkflowValidation
	StepCreate   = pavv1.WorkflowCreation
	StepExpand   = pavv1.WorkflowExpansion
	StepModify   = pavv1.WorkflowModification
	StepUpdate   = "update"
	StepRevert   = "revert"
	StepDelete   = pavv1.WorkflowDeletion

	StepGrant  = pavv1.WorkflowGrant
	StepRotate = "rotate"
	StepRevoke = pavv1.WorkflowRevocation
)

// Reasons of failures, values of the label reason.
const (
	ReasonRefused     = "refused"
	ReasonNotStarted  = "not_started"
	ReasonExitCode    = "exit_code"
	ReasonOutOfMemory = "out_of_memory"
	ReasonEvicted     = "evicted"
	ReasonDeadline    = "deadline"
	ReasonStopped     = "stopped"
	ReasonVanished    = "vanished"
	ReasonResult      = "result"
	ReasonOther       = "other"
)

var reasons = []string{
	ReasonRefused, ReasonNotStarted, ReasonExitCode, ReasonOutOfMemory, ReasonEvicted, ReasonDeadline,
	ReasonStopped, ReasonVanished, ReasonResult, ReasonOther,
}

// evictions are the reasons of kubelet, and of others that evict pods, for an evicted pod.
var evictions = map[string]bool{
	"Evicted": true, "Preempting": true, "Terminated": true, "NodeShutdown": true, "NodeAffinity": true,
	"UnexpectedAdmissionError": true, "OutOfcpu": true, "OutOfmemory": true, "OutOfpods": true, "NodeLost": true,
}

// ReasonOf returns the reason of a failure. Pod is the pod of the failure, or nil if it is gone or there was none.
func ReasonOf(failure *pavv1.WorkflowFailure, pod *corev1.Pod) string {
	switch {
	case failure.PodName == "":
		return ReasonRefused
	case pod == nil:
		return ReasonVanished
	case workflow.Judge(pod) == workflow.Succeeded, workflow.Judge(pod) == workflow.Running:
		return ReasonResult
	case pod.Status.Reason == "DeadlineExceeded":
		return ReasonDeadline
	case evictions[pod.Status.Reason]:
		return ReasonEvicted
	case !workflow.Started(pod):
		return ReasonNotStarted
	case pod.DeletionTimestamp != nil:
		return ReasonStopped
	}
	return exitReason(pod)
}

// exitReason returns the reason of a pod's failure from the exits of its containers.
func exitReason(pod *corev1.Pod) string {
	reason := ReasonOther
	for ended := range terminations(pod) {
		if ended.Reason == "OOMKilled" {
			return ReasonOutOfMemory
		}
		if ended.ExitCode != 0 {
			reason = ReasonExitCode
		}
	}
	return reason
}

// times are the times in a pod's life; zero if a time is not known or was not reached.
type times struct {
	due, created, began, ended time.Time
}

// timesOf returns the times from the record and from the pod's status.
func timesOf(ref *pavv1.PodReference, pod *corev1.Pod) times {
	is := times{created: pod.CreationTimestamp.Time}
	if ref != nil && ref.Due != nil {
		is.due = ref.Due.Time
	}
	for ended := range terminations(pod) {
		is.saw(ended.StartedAt.Time)
		if ended.FinishedAt.After(is.ended) {
			is.ended = ended.FinishedAt.Time
		}
	}
	for status := range statuses(pod) {
		if running := status.State.Running; running != nil {
			is.saw(running.StartedAt.Time)
			is.ended = time.Time{}
			break
		}
	}
	return is
}

// saw notes that a container ran from then on.
func (t *times) saw(began time.Time) {
	if !began.IsZero() && (t.began.IsZero() || began.Before(t.began)) {
		t.began = began
	}
}

// terminations returns how the pod's containers have ended, init containers first, including containers that were
// restarted.
func terminations(pod *corev1.Pod) func(func(*corev1.ContainerStateTerminated) bool) {
	return func(yield func(*corev1.ContainerStateTerminated) bool) {
		for status := range statuses(pod) {
			for _, state := range []*corev1.ContainerState{&status.LastTerminationState, &status.State} {
				if state.Terminated != nil && !yield(state.Terminated) {
					return
				}
			}
		}
	}
}

func statuses(pod *corev1.Pod) func(func(*corev1.ContainerStatus) bool) {
	return func(yield func(*corev1.ContainerStatus) bool) {
		for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range all {
				if !yield(&all[i]) {
					return
				}
			}
		}
	}
}
