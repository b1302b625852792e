package volume

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// patchStatus writes what change makes of a volume's status, unless somebody else wrote the volume
// meanwhile: a decision made on an old status must not become the new one.
func (r *Reconciler) patchStatus(ctx context.Context, volume *pavv1.PavVolume, change func(*pavv1.PavVolumeStatus)) error {
	changed := volume.DeepCopy()
	change(&changed.Status)
	if equality.Semantic.DeepEqual(volume.Status, changed.Status) {
		return nil
	}
	changed.Status.ObservedGeneration = volume.Generation
	patch := client.MergeFromWithOptions(volume, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, changed, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the status of PavVolume %q: %w", volume.Name, err)
	}
	return nil
}

// patchCondition makes a condition false, with what the decision says about it.
func (r *Reconciler) patchCondition(ctx context.Context, volume *pavv1.PavVolume, condition string, d decision) error {
	if hasCondition(volume, condition, d) {
		return nil
	}
	return r.patchStatus(ctx, volume, func(status *pavv1.PavVolumeStatus) {
		if status.Phase == "" {
			status.Phase = pavv1.VolumePending
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionFalse,
			Reason: d.reason, Message: d.message, ObservedGeneration: volume.Generation})
	})
}

// hasCondition says whether a condition is false already, with what the decision says about it.
func hasCondition(volume *pavv1.PavVolume, condition string, d decision) bool {
	c := meta.FindStatusCondition(volume.Status.Conditions, condition)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == d.reason && c.Message == d.message
}
