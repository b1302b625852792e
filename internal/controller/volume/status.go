package volume

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// patchStatus writes a changed status, unless the PavVolume was written by another process meanwhile: a decision on an old
// status must not be written. After that, volume is the object that was written.
func (r *Reconciler) patchStatus(ctx context.Context, volume *pavv1.PavVolume, change change) error {
	changed := volume.DeepCopy()
	change(&changed.Status)
	if equality.Semantic.DeepEqual(volume.Status, changed.Status) {
		return nil
	}
	r.stamp(volume.Status.Conditions, changed.Status.Conditions)
	changed.Status.ObservedGeneration, changed.Status.AgentVersion = volume.Generation, r.Version
	patch := client.MergeFromWithOptions(volume, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, changed, patch); apierrors.IsNotFound(err) {
		return reconcile.ErrStale
	} else if err != nil {
		return fmt.Errorf("updating the status of PavVolume %q: %w", volume.Name, err)
	}
	r.expectations.Replace(volume.Name, volume.ResourceVersion, changed.ResourceVersion)
	before := volume.Status
	*volume = *changed
	r.measure(ctx, volume, &before)
	return nil
}

// stamp sets the times of conditions that are new, or whose status has changed, to the time of the cluster:
// meta.SetStatusCondition uses the clock of the machine.
func (r *Reconciler) stamp(before, after []metav1.Condition) {
	for i := range after {
		was := meta.FindStatusCondition(before, after[i].Type)
		if was == nil || !was.LastTransitionTime.Equal(&after[i].LastTransitionTime) {
			after[i].LastTransitionTime = metav1.NewTime(r.Now())
		}
	}
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

// hasCondition reports whether a condition is already false with the reason and message of the decision.
func hasCondition(volume *pavv1.PavVolume, d decision) bool {
	c := meta.FindStatusCondition(volume.Status.Conditions, d.Condition)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == d.Reason && c.Message == d.Message
}

// setCondition sets a condition to false.
func setCondition(volume *pavv1.PavVolume, status *pavv1.PavVolumeStatus, kind, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse,
		Reason: reason, Message: observability.Clip(message, observability.MaxCondition), ObservedGeneration: volume.Generation})
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
