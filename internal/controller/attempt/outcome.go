package attempt

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// Failure returns the failure of the recorded pod, which is Failed or Vanished.
func (a Attempt) Failure(kind string) *pavv1.WorkflowFailure {
	pod := a.Pod()
	if pod == nil {
		return &pavv1.WorkflowFailure{
			Workflow: kind, Reason: pavv1.FailurePodRemoved, PodNamespace: a.Ref.Namespace, PodName: a.Ref.Name,
			Message: fmt.Sprintf("pod %s/%s was removed by force before its outcome was known", a.Ref.Namespace, a.Ref.Name),
		}
	}
	failure := failureOf(kind, pod, errorText(pod))
	switch {
	case a.Retried && pod.DeletionTimestamp != nil:
		failure.Reason = pavv1.FailurePodStopped
	case IsInfeasible(pod):
		failure.Reason = pavv1.FailureInfeasible
	}
	return failure
}

// IsInfeasible reports whether a pod failed by itself and promised, by /pav/infeasible, that it had changed nothing. A pod
// that was stopped may have been about to break the promise, and one that named its storage has broken it.
func IsInfeasible(pod *corev1.Pod) bool {
	result, err := workflow.ResultOf(pod)
	return err == nil && result != nil && result.Infeasible != nil && !hasMade(result) && workflow.FailedByItself(pod)
}

// hasMade reports whether a pod has told of something that it has made.
func hasMade(result *workflow.Result) bool {
	return result.Ready || result.Handle != "" || result.SnapshotHandle != "" ||
		result.BucketID != "" || result.Created || result.AccountID != "" || len(result.Sealed) > 0
}

// failureOf returns the failure of a pod that wrote a text to /pav/error, as it is recorded.
func failureOf(kind string, pod *corev1.Pod, text string) *pavv1.WorkflowFailure {
	failure := workflow.Failure(kind, pod, text)
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	return failure
}

// LateFailure returns a recorded failure as it is to be recorded now: with the text in /pav/error, which the node
// reported after the failure was recorded. It returns nil if there is no such failure.
func LateFailure(pods []corev1.Pod, recorded ...*pavv1.WorkflowFailure) *pavv1.WorkflowFailure {
	for _, failure := range recorded {
		if failure == nil {
			continue
		}
		pod := PodNamed(pods, failure.PodNamespace, failure.PodName)
		if pod == nil || workflow.Judge(pod) != workflow.Failed {
			continue
		}
		without, with := failureOf(failure.Workflow, pod, ""), failureOf(failure.Workflow, pod, errorText(pod))
		if failure.Message == without.Message && failure.Message != with.Message {
			with.Reason, with.Time, with.NextAttemptTime = failure.Reason, failure.Time, failure.NextAttemptTime
			return with
		}
	}
	return nil
}

// NewFailure returns a failure that was not recorded before, or nil. Another text about the same pod is the same failure.
func NewFailure(before, after *pavv1.WorkflowFailure) *pavv1.WorkflowFailure {
	if after == nil || equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if before != nil && after.PodName != "" && before.PodName == after.PodName {
		return nil
	}
	return after
}

// errorText returns the texts that a pod wrote to /pav/infeasible and /pav/error, as far as its node has reported them, or "".
func errorText(pod *corev1.Pod) string {
	result, err := workflow.ResultOf(pod)
	switch {
	case err != nil || result == nil:
		return ""
	case result.Infeasible == nil || *result.Infeasible == "" || *result.Infeasible == result.Error:
		return result.Error
	case result.Error == "":
		return *result.Infeasible
	default:
		return *result.Infeasible + "; " + result.Error
	}
}

// HasEndedWithin reports whether the last container of a pod ended less than a duration ago, by a clock that may
// differ from this one.
func HasEndedWithin(now time.Time, pod *corev1.Pod, duration time.Duration) bool {
	var end time.Time
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if ended := s.State.Terminated; ended != nil && ended.FinishedAt.After(end) {
				end = ended.FinishedAt.Time
			}
		}
	}
	return now.Sub(end).Abs() < duration
}

// UnreportedFor returns how long the node of a pod that Kubernetes' garbage collector ended has not reported its files;
// 0 for other pods. If there is a node of that name again, its agent would have reported long before LongDelay, or
// does not know the pod.
func UnreportedFor(now time.Time, pod *corev1.Pod) time.Duration {
	at, collected := workflow.Collected(pod)
	if !collected {
		return 0
	}
	return now.Sub(at)
}

// WasNeverBound reports whether a pod that is over was never bound to a node, so that no container of it ever ran.
func WasNeverBound(pod *corev1.Pod) bool {
	return pod != nil && pod.Spec.NodeName == "" && !workflow.Started(pod)
}

// CertainlyNeverRan reports whether it is certain that no container of a pod that is over ever ran: it was never bound, or its node,
// which exists, says so and has not given it its /pav.
func CertainlyNeverRan(pod *corev1.Pod, nodeGone bool) bool {
	return WasNeverBound(pod) || workflow.NeverRan(pod) && !nodeGone && pod.Annotations[pavv1.GivenAnnotation] == ""
}
