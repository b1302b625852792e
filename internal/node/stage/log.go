package stage

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// logProgress logs what a write of the status has recorded: that the volume is staged, or that an attempt failed.
func (t *task) logProgress(ctx context.Context, before *pavv1.PavStageStatus) {
	after := &t.stage.Status
	for _, failure := range []struct{ before, after *pavv1.WorkflowFailure }{
		{before.StagingFailure, after.StagingFailure}, {before.UnstagingFailure, after.UnstagingFailure},
		{expansionFailure(before), expansionFailure(after)},
	} {
		if isNew(failure.before, failure.after) {
			t.log(ctx, "an attempt failed", observability.Workflow, failure.after.Workflow, observability.Reason, failure.after.Message)
		}
	}
	if before.Phase == pavv1.StageStaged || after.Phase != pavv1.StageStaged {
		return
	}
	if before.Restaging {
		t.log(ctx, "staged a volume again", t.since(before.Conditions, pavv1.StageDegraded)...)
		return
	}
	t.log(ctx, "staged a volume", observability.Duration, t.clusterTime().Sub(t.stage.CreationTimestamp.Time).Round(time.Millisecond).String())
}

// logEnd logs that a stage has been removed from the node.
func (t *task) logEnd(ctx context.Context) {
	what := "unstaged a volume"
	if t.stage.Status.StagingFailure != nil {
		what = "reverted the staging of a volume"
	}
	t.log(ctx, what, t.since(t.stage.Status.Conditions, pavv1.StageReady)...)
}

// since returns how long ago a condition has changed, as a key and value of a log line.
func (t *task) since(conditions []metav1.Condition, kind string) []any {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return nil
	}
	return []any{observability.Duration, t.clusterTime().Sub(c.LastTransitionTime.Time).Round(time.Millisecond).String()}
}

// log writes a line about the stage to the log.
func (t *task) log(ctx context.Context, message string, keys ...any) {
	spec := &t.stage.Spec
	keys = append([]any{observability.Volume, spec.VolumeName, observability.Claim, observability.Name(spec.ClaimRef.Namespace, spec.ClaimRef.Name)}, keys...)
	if spec.Client != nil {
		keys = append(keys, observability.Pod, observability.Name(spec.Client.Namespace, spec.Client.Name))
	}
	ctrl.LoggerFrom(ctx).Info(message, keys...)
}
