package workflow

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestRetryIn(t *testing.T) {
	now := time.Now()
	ago := func(ago time.Duration) *pavv1.WorkflowFailure {
		return &pavv1.WorkflowFailure{Time: metav1.NewTime(now.Add(-ago))}
	}
	tests := map[string]struct {
		last     *pavv1.WorkflowFailure
		failures int
		want     time.Duration
	}{
		"no failure":                                   {failures: 1},
		"one second after the first failure":           {last: ago(0), failures: 1, want: time.Second},
		"one second also where no failure was counted": {last: ago(0), want: time.Second},
		"twice as long after each further failure":     {last: ago(0), failures: 4, want: 8 * time.Second},
		"less the time since the failure":              {last: ago(3 * time.Second), failures: 4, want: 5 * time.Second},
		"nothing when the delay has passed":            {last: ago(time.Minute), failures: 4},
		"at most five minutes":                         {last: ago(0), failures: 10, want: 5 * time.Minute},
		"at most five minutes after very many":         {last: ago(0), failures: 2000, want: 5 * time.Minute},
		"nothing if a retry stopped the pod":           {last: &pavv1.WorkflowFailure{Reason: pavv1.FailurePodStopped, Time: metav1.NewTime(now)}, failures: 4},
		"ten minutes if it was infeasible":             {last: &pavv1.WorkflowFailure{Reason: pavv1.FailureInfeasible, Time: metav1.NewTime(now)}, failures: 1, want: 10 * time.Minute},
		"no longer than the delay if a clock is ahead": {last: ago(-time.Hour), failures: 4, want: 8 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := RetryIn(test.last, test.failures, now); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// The recorded time is that of the attempt for which RetryIn waits.
func TestDate_AnnouncesTheNextAttempt(t *testing.T) {
	now := time.Now()
	for failures := range 12 {
		failure := &pavv1.WorkflowFailure{}
		if failures == 11 {
			failure.Reason = pavv1.FailurePodStopped
		}
		Date(failure, failures, now)
		if want := now.Add(RetryIn(failure, failures, now)); !failure.Time.Time.Equal(now) || !failure.NextAttemptTime.Time.Equal(want) {
			t.Errorf("after %d failures at %s, the next attempt is at %s, want %s", failures, now, failure.NextAttemptTime, want)
		}
	}
}
