package stage

import (
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// asked returns when somebody asked for the next attempt at what has failed of a stage; the zero time where
// nobody did, or an attempt has begun since: a wish counts once, also where the clock that wrote it is
// ahead of ours. An agent that begins anew may heed one twice.
func (t *attemptTracker) asked(stage *pavv1.PavStage, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	value := stage.Annotations[pavv1.RetryAnnotation]
	if known := t.of[stage.Name]; value == "" || known != nil && known.granted == value {
		return time.Time{}
	}
	return pavv1.RetryAsked(stage, now)
}

// grant notes that an attempt has begun.
func (t *attemptTracker) grant(stage *pavv1.PavStage) {
	if value := stage.Annotations[pavv1.RetryAnnotation]; value != "" {
		t.change(stage.Name, func(known *attemptProblems) { known.granted = value })
	}
}

// unlessAsked returns how long to wait after a failure: not at all where somebody has asked for the next attempt since.
func (t *task) unlessAsked(wait time.Duration, last *pavv1.WorkflowFailure) time.Duration {
	if wait > 0 && t.attempts.asked(t.stage, t.clusterTime()).After(last.Time.Time) {
		return 0
	}
	return wait
}
