package volume

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/ledger"
)

// patchStatus writes a changed status, unless the PavVolume was written by another process meanwhile. After that, volume is
// the object that was written.
func (r *Reconciler) patchStatus(ctx context.Context, volume *pavv1.PavVolume, change change) error {
	before := volume.Status
	statuses := &ledger.Writer[*pavv1.PavVolume]{Client: r.Client, Expectations: &r.expectations, Version: r.Version, Now: r.Now}
	written, err := statuses.Patch(ctx, volume, func(changed *pavv1.PavVolume) { change(&changed.Status) })
	if written {
		r.measure(ctx, volume, &before)
	}
	return err
}

// patchCondition sets a condition to false, with the reason and message of the decision.
func (r *Reconciler) patchCondition(ctx context.Context, volume *pavv1.PavVolume, d decision) error {
	return r.patchStatus(ctx, volume, func(status *pavv1.PavVolumeStatus) {
		if status.Phase == "" {
			status.Phase = pavv1.VolumePending
		}
		if pavv1.IsStoppedByRetry(d.Reason) && pavv1.StoppedByRetry(status.Conditions, d.Condition) == nil {
			status.LastHandledRetry = volume.Annotations[pavv1.RetryAnnotation] // a later request stops the pod
		}
		setCondition(volume, status, d.Condition, d.Reason, d.Message)
	})
}

// setCondition sets a condition to false.
func setCondition(volume *pavv1.PavVolume, status *pavv1.PavVolumeStatus, kind, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, ledger.False(volume.Generation, kind, reason, message))
}

// conditionOf returns the condition that reports a step.
func conditionOf(step pavv1.VolumeStep) string {
	return conditionFor(workflows[step])
}

// conditionFor returns the condition that reports a workflow.
func conditionFor(kind string) string {
	switch kind {
	case pavv1.WorkflowDeletion:
		return pavv1.VolumeDeleted
	case pavv1.WorkflowExpansion:
		return pavv1.VolumeExpanded
	case pavv1.WorkflowModification:
		return pavv1.VolumeModified
	default:
		return pavv1.VolumeProvisioned
	}
}
