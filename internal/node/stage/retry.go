package stage

import (
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// retryRequested returns when a retry was requested that no attempt has handled; the zero time if there is none.
func (s *Stager) retryRequested(stage *pavv1.PavStage) time.Time {
	return pavv1.RetryRequested(stage, stage.Status.LastHandledRetry, s.clusterTime())
}

// handleRetry records that an attempt handles the retry that was requested, if any.
func (t *task) handleRetry(status *pavv1.PavStageStatus) {
	status.LastHandledRetry = t.stage.Annotations[pavv1.RetryAnnotation]
}

// unlessRetried returns how long to wait after a failure: 0 if a retry was requested after it.
func (t *task) unlessRetried(wait time.Duration, last *pavv1.WorkflowFailure) time.Duration {
	if wait > 0 && t.retryRequested(t.stage).After(last.Time.Time) {
		return 0
	}
	return wait
}
