package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/index"
	"github.com/albertofaria/pav/internal/controller/protocol"
	"github.com/albertofaria/pav/internal/controller/retry"
	"github.com/albertofaria/pav/internal/observe"
)

// settleOrphan does what is left to do about the PersistentVolume of that name where there is no PavVolume any more.
func (r *Reconciler) settleOrphan(ctx context.Context, name string) error {
	pv, err := r.orphan(ctx, r.Client, name)
	if err != nil || pv == nil {
		return err
	}
	switch decideOrphan(pv) {
	case orphanKept:
	case orphanTold:
		return r.tellOrphan(ctx, pv)
	case orphanReleased:
		return r.releaseOrphan(ctx, name)
	}
	return nil
}

// orphan returns the PersistentVolume of that name if it is of a provisioner that may be used, or nil. PaV's finalizer
// on it is external-provisioner's, too: on a volume of another driver it is not PaV's to remove.
func (r *Reconciler) orphan(ctx context.Context, reader client.Reader, name string) (*corev1.PersistentVolume, error) {
	pv, err := optional(ctx, reader, types.NamespacedName{Name: name}, &corev1.PersistentVolume{})
	if err != nil || pv == nil || pv.Spec.CSI == nil || pv.Annotations[protocol.ProvisionedBy] != pv.Spec.CSI.Driver {
		return nil, err
	}
	provisioner, err := optional(ctx, r.Client, types.NamespacedName{Name: pv.Spec.CSI.Driver}, &pavv1.PavProvisioner{})
	if err != nil || provisioner == nil || provisioner.Refusal() != "" ||
		meta.FindStatusCondition(provisioner.Status.Conditions, pavv1.ProvisionerAccepted) == nil {
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
	case isHeld(pv) && pv.Status.Phase != corev1.VolumeBound:
		return orphanReleased
	case pv.DeletionTimestamp == nil && pv.Status.Phase == corev1.VolumeReleased && policyOf(pv) == corev1.PersistentVolumeReclaimDelete:
		return orphanTold
	default:
		return orphanKept
	}
}

// isHeld reports whether a PersistentVolume is being deleted, and PaV's finalizer keeps it.
func isHeld(pv *corev1.PersistentVolume) bool {
	return pv.DeletionTimestamp != nil && slices.Contains(pv.Finalizers, pavv1.PVFinalizer)
}

// tellOrphan tells whoever waits for a volume's deletion that PaV cannot delete it.
func (r *Reconciler) tellOrphan(ctx context.Context, pv *corev1.PersistentVolume) error {
	holders, err := index.Holders(ctx, r.Client, storageOf(pv))
	if err != nil {
		return fmt.Errorf("looking up who has the storage of PersistentVolume %q: %w", pv.Name, err)
	}
	what := fmt.Sprintf("delete the storage of handle %q by hand, then the PersistentVolume", pv.Spec.CSI.VolumeHandle)
	if others := besidesPV(pv, holders); len(others) > 0 {
		what = fmt.Sprintf("delete the PersistentVolume, but not the storage of handle %q, which %s %q has, too", pv.Spec.CSI.VolumeHandle, others[0].Kind, others[0].Name)
	}
	r.Events.Event(pv, corev1.EventTypeWarning, protocol.VolumeFailedDelete, observe.Clip(
		fmt.Sprintf("there is no PavVolume %q, so that PaV does not know from what the volume was made: %s", pv.Name, what), observe.MaxNote))
	return nil
}

// releaseOrphan lets go of a PersistentVolume that is being deleted and has no PavVolume. Its storage stays, as PaV
// does not know from what it was made.
func (r *Reconciler) releaseOrphan(ctx context.Context, name string) error {
	volume, err := optional(ctx, r.Live, types.NamespacedName{Name: name}, &pavv1.PavVolume{})
	if err != nil {
		return err
	}
	pv, err := r.orphan(ctx, r.Live, name)
	if err != nil || pv == nil {
		return err // what is gone is not told of: its storage may have been deleted with it
	}
	if volume != nil || decideOrphan(pv) != orphanReleased {
		return retry.ErrStale
	}
	holders, err := r.holders.Holders(ctx, storageOf(pv))
	if err != nil {
		return err
	}
	others := besidesPV(pv, holders)
	if nodes := index.StagedOn(others); len(nodes) > 0 {
		r.Events.Eventf(pv, corev1.EventTypeNormal, protocol.VolumeDeletionWaiting, "waiting for the volume to be unstaged on node %s", nodes[0])
		return nil // the end of the stage is an event, and brings the next pass
	}
	ctrl.LoggerFrom(ctx).Info("letting go of a PersistentVolume that has no PavVolume", "handle", pv.Spec.CSI.VolumeHandle)
	if len(others) == 0 && policyOf(pv) != corev1.PersistentVolumeReclaimRetain {
		// Before it is gone: rather twice than never.
		r.Events.Event(pv, corev1.EventTypeWarning, protocol.VolumeFailedDelete, observe.Clip(fmt.Sprintf(
			"there is no PavVolume %q, so that PaV has not deleted the storage of handle %q: see whether it is still there, and delete it by hand if nobody uses it", name, pv.Spec.CSI.VolumeHandle), observe.MaxNote))
	}
	released := pv.DeepCopy()
	applyFinalizer(released, pavv1.PVFinalizer, remove)
	return r.patch(ctx, pv, released)
}

func storageOf(pv *corev1.PersistentVolume) index.Volume {
	return index.Volume{Driver: pv.Spec.CSI.Driver, Handle: pv.Spec.CSI.VolumeHandle, Name: pv.Name}
}

// besidesPV returns the holders of a PersistentVolume's storage but for itself.
func besidesPV(pv *corev1.PersistentVolume, holders []index.Holder) []index.Holder {
	return slices.DeleteFunc(holders, func(h index.Holder) bool { return h.Kind == index.KindPV && h.Name == pv.Name })
}

// orphansOf returns the PersistentVolumes of a driver that only PaV's finalizer may keep: they are looked at again
// when there is a provisioner of that name.
func (r *Reconciler) orphansOf(ctx context.Context, driver string) []reconcile.Request {
	pvs := &corev1.PersistentVolumeList{}
	if err := r.Client.List(ctx, pvs, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look PersistentVolumes up", observe.Provisioner, driver)
		return nil
	}
	var requests []reconcile.Request
	for i := range pvs.Items {
		if pv := &pvs.Items[i]; pv.Spec.CSI != nil && pv.Spec.CSI.Driver == driver && isHeld(pv) {
			requests = append(requests, named(pv.Name)...)
		}
	}
	return requests
}
