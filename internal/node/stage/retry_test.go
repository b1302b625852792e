package stage

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestRetryAsked_SkipsTheWaitOnce(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &Stager{attempts: newAttemptTracker(), clusterTime: func() time.Time { return now }}
	task := &task{Stager: s, stage: &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "stage-1"}}}
	failed := func(ago time.Duration) *pavv1.WorkflowFailure {
		return &pavv1.WorkflowFailure{Time: metav1.NewTime(now.Add(-ago))}
	}
	wait := func(what string, last *pavv1.WorkflowFailure, want time.Duration) {
		t.Helper()
		if got := task.unlessAsked(time.Minute, last); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	wait("nobody has asked", failed(10*time.Second), time.Minute)
	wish := func(at time.Time) {
		task.stage.Annotations = map[string]string{pavv1.RetryAnnotation: at.Format(pavv1.RetryFormat)}
	}
	wish(now.Add(-time.Second))
	wait("somebody has", failed(10*time.Second), 0)
	wait("an attempt has failed since", failed(0), time.Minute)
	wish(now.Add(time.Hour)) // by a clock that is ahead
	wait("in the future", failed(time.Second), 0)
	s.attempts.grant(task.stage)
	wait("an attempt has begun since", failed(time.Second), time.Minute)
	s.attempts.change(task.stage.Name, func(known *attemptProblems) { known.failures = 3 })
	s.attempts.settle(task.stage.Name)
	wait("the attempt has succeeded, and what it made has died", failed(time.Second), time.Minute)
	if failures := s.attempts.failures(task.stage.Name); failures != 0 {
		t.Errorf("after a success: got %d failures in a row", failures)
	}
	wish(now.Add(2 * time.Hour))
	wait("somebody has asked again", failed(time.Second), 0)
	s.attempts.forget(task.stage.Name)
	if len(s.attempts.of) > 0 {
		t.Errorf("a stage that is gone is remembered: %v", s.attempts.of)
	}
	task.stage.Annotations[pavv1.RetryAnnotation] = "yes"
	wait("with no time", failed(time.Second), time.Minute)
}
