package stage

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/health"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observability"
)

// Config returns the configuration of the Stager, with its defaults.
func (s *Stager) Config() Config { return s.config }

// Observe connects the Stager with the monitor. Tracker has the condition of volumes; callEnded is called with the
// name of the stage at the end of each call. Observe must be called before the Stager serves calls.
func (s *Stager) Observe(tracker *health.Tracker, callEnded func(stage string)) {
	s.health, s.callEnded = tracker, callEnded
}

// SetDegraded writes the condition Degraded of a PavStage.
func (s *Stager) SetDegraded(ctx context.Context, stage *pavv1.PavStage, status metav1.ConditionStatus, reason, message string) error {
	s.setCondition(stage, pavv1.StageDegraded, status, reason, observability.Clip(message, observability.MaxCondition))
	return s.writeStatus(ctx, stage)
}

// SetSynced writes to a PavStage up to which request the volume is written back, or why a later request failed.
func (s *Stager) SetSynced(ctx context.Context, stage *pavv1.PavStage, synced *metav1.MicroTime, problem string) error {
	stage.Status.SyncedTime, stage.Status.SyncError = synced, observability.Clip(problem, observability.MaxNote)
	return s.writeStatus(ctx, stage)
}

// Report records an event on the PavStage, on its claim, and on the client pods of publications.
func (s *Stager) Report(ctx context.Context, stage *pavv1.PavStage, publications []pavdir.Publication, kind, reason, message string) {
	note := observability.Clip(message, observability.MaxNote)
	s.reportOnStage(ctx, stage, kind, reason, note)
	s.reportToPods(publications, kind, reason, note)
}

// RetryRequested returns when a retry was requested that no attempt has handled; the zero time if there is none.
func (s *Stager) RetryRequested(stage *pavv1.PavStage) time.Time { return s.retryRequested(stage) }

// Forget removes what is remembered of a PavStage that is deleted.
func (s *Stager) Forget(stage string) { s.attempts.forget(stage) }
