package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/protocol"
	"github.com/albertofaria/pav/internal/controller/retry"
)

// settleOrphan does what is left to do about the PersistentVolume of that name where there is no PavVolume any more.
func (r *Reconciler) settleOrphan(ctx context.Context, name string) error {
	pv, err := r.orphan(ctx, name)
	if err != nil || pv == nil {
		return err
	}
	switch decideOrphan(pv) {
	case orphanKept:
	case orphanTold:
		r.Events.Eventf(pv, corev1.EventTypeWarning, protocol.VolumeFailedDelete,
			"PavVolume %q does not exist any more, so that PaV does not know from what the volume was made: delete the storage of handle %q by hand, then the PersistentVolume", name, pv.Spec.CSI.VolumeHandle)
	case orphanReleased:
		return r.releaseOrphan(ctx, pv)
	}
	return nil
}

// orphan returns the PersistentVolume of that name if it is of a provisioner, or nil.
func (r *Reconciler) orphan(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	pv, err := optional(ctx, r.Client, types.NamespacedName{Name: name}, &corev1.PersistentVolume{})
	if err != nil || pv == nil || pv.Spec.CSI == nil || pv.Annotations[protocol.ProvisionedBy] != pv.Spec.CSI.Driver {
		return nil, err
	}
	provisioner, err := optional(ctx, r.Client, types.NamespacedName{Name: pv.Spec.CSI.Driver}, &pavv1.PavProvisioner{})
	if err != nil || provisioner == nil {
		return nil, err
	}
	return pv, nil
}

// orphanFate is what becomes of a PersistentVolume without a PavVolume.
type orphanFate string

const (
	orphanKept     orphanFate = "Kept"
	orphanTold     orphanFate = "Told"     // whoever waits for its deletion learns that PaV cannot delete its storage
	orphanReleased orphanFate = "Released" // from PaV's finalizer, which would keep it for ever
)

// decideOrphan is pure.
func decideOrphan(pv *corev1.PersistentVolume) orphanFate {
	switch {
	case pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound && slices.Contains(pv.Finalizers, pavv1.PVFinalizer):
		return orphanReleased
	case pv.DeletionTimestamp == nil && pv.Status.Phase == corev1.VolumeReleased && policyOf(pv) == corev1.PersistentVolumeReclaimDelete:
		return orphanTold
	default:
		return orphanKept
	}
}

// releaseOrphan lets a PersistentVolume go that an administrator has deleted and that has no PavVolume. Its storage
// stays, as PaV does not know from what it was made.
func (r *Reconciler) releaseOrphan(ctx context.Context, pv *corev1.PersistentVolume) error {
	volume, err := optional(ctx, r.Live, types.NamespacedName{Name: pv.Name}, &pavv1.PavVolume{})
	if err != nil {
		return err
	}
	if volume != nil {
		return retry.ErrStale
	}
	// Before it is gone: rather twice than never.
	r.Events.Eventf(pv, corev1.EventTypeWarning, protocol.VolumeFailedDelete,
		"the PersistentVolume is deleted, and PavVolume %q does not exist any more, so that the storage of handle %q is left: delete it by hand", pv.Name, pv.Spec.CSI.VolumeHandle)
	released := pv.DeepCopy()
	applyFinalizer(released, pavv1.PVFinalizer, remove)
	if err := r.patch(ctx, pv, released); err != nil {
		return fmt.Errorf("letting go of a PersistentVolume without PavVolume: %w", err)
	}
	ctrl.LoggerFrom(ctx).Info("let go of a PersistentVolume that has no PavVolume", "handle", pv.Spec.CSI.VolumeHandle)
	return nil
}
