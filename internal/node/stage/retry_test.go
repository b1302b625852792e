package stage

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestUnlessRetried_SkipsTheWaitOnce(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &Stager{attempts: newAttemptTracker(), clusterTime: func() time.Time { return now }}
	task := &task{Stager: s, stage: &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "stage-1"}}}
	failed := func(ago time.Duration) *pavv1.WorkflowFailure {
		return &pavv1.WorkflowFailure{Time: metav1.NewTime(now.Add(-ago))}
	}
	wait := func(what string, last *pavv1.WorkflowFailure, want time.Duration) {
		t.Helper()
		if got := task.unlessRetried(time.Minute, last); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	request := func(at time.Time) {
		task.stage.Annotations = map[string]string{pavv1.RetryAnnotation: at.Format(pavv1.RetryFormat)}
	}
	wait("no request", failed(10*time.Second), time.Minute)
	request(now.Add(-time.Second))
	wait("a request after the failure", failed(10*time.Second), 0)
	wait("a request before the failure", failed(0), time.Minute)
	request(now.Add(time.Hour))
	wait("a request by a clock that is ahead", failed(time.Second), 0)
	task.handleRetry(&task.stage.Status)
	wait("a request that an attempt has handled", failed(time.Second), time.Minute)
	request(now.Add(2 * time.Hour))
	wait("the next request", failed(time.Second), 0)
	task.stage.Annotations[pavv1.RetryAnnotation] = "yes"
	wait("no time", failed(time.Second), time.Minute)
}
