package workflow

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The delay before the next attempt doubles with each failure, from the first to the longest.
const (
	FirstRetryDelay   = time.Second
	LongestRetryDelay = 5 * time.Minute
)

// InfeasibleDelay is the delay after a failure that a pod has called infeasible: the next attempt would fail, too, unless the
// request or the definition changes, or something in the storage that PaV does not know of.
const InfeasibleDelay = 10 * time.Minute

// RetryDelay returns the delay after so many failures: a second after the first, twice as long after each further one,
// and at most five minutes.
func RetryDelay(failures int) time.Duration {
	if failures > 9 {
		return LongestRetryDelay
	}
	return min(FirstRetryDelay<<max(failures-1, 0), LongestRetryDelay)
}

// Date sets when a failure, the last of so many, happened, and when the next attempt is due.
func Date(failure *pavv1.WorkflowFailure, failures int, now time.Time) {
	failure.Time = metav1.NewTime(now)
	failure.NextAttemptTime = new(metav1.NewTime(now.Add(DelayAfter(failure, failures))))
}

// DelayAfter returns the delay after a failure that is the last of so many.
func DelayAfter(last *pavv1.WorkflowFailure, failures int) time.Duration {
	switch last.Reason {
	case pavv1.FailurePodStopped: // for the next attempt
		return 0
	case pavv1.FailureInfeasible:
		return InfeasibleDelay
	default:
		return RetryDelay(failures)
	}
}

// RetryIn returns how much of the delay is left after a failure that is the last of so many; 0 if there is no failure.
// Clocks may differ, or be set back: that makes it no longer than the delay.
func RetryIn(last *pavv1.WorkflowFailure, failures int, now time.Time) time.Duration {
	if last == nil {
		return 0
	}
	delay := DelayAfter(last, failures)
	return min(max(last.Time.Add(delay).Sub(now), 0), delay)
}
