package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// settleOrphan handles the PersistentVolume of a name that has no PavVolume any more.
func (r *Reconciler) settleOrphan(ctx context.Context, name string) error {
	pv, err := r.orphan(ctx, r.Client, name)
	if err != nil || pv == nil {
		return err
	}
	switch decideOrphan(pv) {
	case orphanKept:
	case orphanReported:
		return r.reportOrphan(ctx, pv)
	case orphanReleased:
		return r.releaseOrphan(ctx, name)
	}
	return nil
}

// orphan returns the PersistentVolume of that name if its provisioner may be used, or nil. PaV's finalizer is also that of
// external-provisioner: PaV must not remove it from a volume of another driver.
func (r *Reconciler) orphan(ctx context.Context, reader client.Reader, name string) (*corev1.PersistentVolume, error) {
	pv, err := reconcile.Optional(ctx, reader, types.NamespacedName{Name: name}, &corev1.PersistentVolume{})
	if err != nil || pv == nil || pv.Spec.CSI == nil || pv.Annotations[protocol.ProvisionedBy] != pv.Spec.CSI.Driver {
		return nil, err
	}
	provisioner, err := reconcile.Optional(ctx, r.Client, types.NamespacedName{Name: pv.Spec.CSI.Driver}, &pavv1.PavProvisioner{})
	if err != nil || provisioner == nil || !provisioner.IsAccepted() {
		return nil, err
	}
	return pv, nil
}

// orphanFate is what happens to a PersistentVolume without a PavVolume.
type orphanFate string

const (
	orphanKept     orphanFate = "Kept"
	orphanReported orphanFate = "Reported" // an event says that PaV cannot delete its storage
	orphanReleased orphanFate = "Released" // PaV's finalizer, which would keep it forever, is removed
)

// decideOrphan is pure.
func decideOrphan(pv *corev1.PersistentVolume) orphanFate {
	switch {
	case reconcile.IsHeld(pv) && pv.Status.Phase != corev1.VolumeBound:
		return orphanReleased
	case pv.DeletionTimestamp == nil && pv.Status.Phase == corev1.VolumeReleased && policyOf(pv) == corev1.PersistentVolumeReclaimDelete:
		return orphanReported
	default:
		return orphanKept
	}
}

// reportOrphan records an event on a PersistentVolume that says that PaV cannot delete its storage. Each change of the
// PersistentVolume, and of what shares its storage, brings another pass.
func (r *Reconciler) reportOrphan(ctx context.Context, pv *corev1.PersistentVolume) error {
	holders, err := reconcile.Holders(ctx, r.Client, storageOf(pv))
	if err != nil {
		return fmt.Errorf("looking up who has the storage of PersistentVolume %q: %w", pv.Name, err)
	}
	what := fmt.Sprintf("delete the storage of handle %q by hand, then the PersistentVolume", pv.Spec.CSI.VolumeHandle)
	if others := besidesPV(pv, holders); len(others) > 0 {
		what = fmt.Sprintf("delete the PersistentVolume, but not the storage of handle %q, which %s has, too", pv.Spec.CSI.VolumeHandle, describe(others[0]))
	}
	return r.tellOfOrphan(pv, what, func() { r.warnOfOrphan(pv, "does not know from what the volume was made: "+what) })
}

// tellOfOrphan records an event about a PersistentVolume unless the same was said a short time ago. If something else was said
// since, it is said again when it is due: the latest event must be true.
func (r *Reconciler) tellOfOrphan(pv *corev1.PersistentVolume, message string, tell func()) error {
	due, next := r.orphans.Due(string(pv.UID), message, r.Now())
	if due {
		tell()
	} else if !r.orphans.IsLatest(string(pv.UID), message) {
		return &reconcile.Later{After: next}
	}
	return nil
}

// warnOfOrphan records an event that says what PaV cannot do without a PavVolume.
func (r *Reconciler) warnOfOrphan(pv *corev1.PersistentVolume, message string) {
	r.Events.Event(pv, corev1.EventTypeWarning, protocol.VolumeFailedDelete,
		observability.Clip(fmt.Sprintf("there is no PavVolume %q, so that PaV %s", pv.Name, message), observability.MaxNote))
}

// releaseOrphan removes PaV's finalizer from a PersistentVolume that is being deleted and has no PavVolume. Its storage is
// not deleted, as the claim and class that a deletion pod needs are not recorded.
func (r *Reconciler) releaseOrphan(ctx context.Context, name string) error {
	volume, err := reconcile.Optional(ctx, r.Live, types.NamespacedName{Name: name}, &pavv1.PavVolume{})
	if err != nil {
		return err
	}
	pv, err := r.orphan(ctx, r.Live, name)
	if err != nil || pv == nil {
		return err // if it is gone, no event is recorded: its storage may have been deleted with it
	}
	if volume != nil || decideOrphan(pv) != orphanReleased {
		return reconcile.ErrStale
	}
	holders, err := r.holders.Holders(ctx, storageOf(pv))
	if err != nil {
		return err
	}
	others := besidesPV(pv, holders)
	if staged := reconcile.StagedOn(others); len(staged) > 0 {
		waits := "waiting for the volume to be unstaged on " + reconcile.ListNodes(staged)
		// The end of the stage is an event, and brings the next pass.
		return r.tellOfOrphan(pv, waits, func() { r.Events.Event(pv, corev1.EventTypeNormal, protocol.VolumeDeletionWaiting, waits) })
	}
	ctrl.LoggerFrom(ctx).Info("letting go of a PersistentVolume that has no PavVolume", "handle", pv.Spec.CSI.VolumeHandle)
	if len(others) == 0 && policyOf(pv) != corev1.PersistentVolumeReclaimRetain {
		left := fmt.Sprintf("has not deleted the storage of handle %q: see whether it is still there, and delete it by hand if nobody uses it", pv.Spec.CSI.VolumeHandle)
		// Recorded before the PersistentVolume is gone: better twice than never. It is counted by itself, so that no other
		// event keeps it back.
		if due, _ := r.orphans.Due(string(pv.UID)+" left", left, r.Now()); due {
			r.warnOfOrphan(pv, left)
		}
	}
	return r.releasePV(ctx, pv)
}

func storageOf(pv *corev1.PersistentVolume) reconcile.StorageKey {
	return reconcile.StorageKey{Driver: pv.Spec.CSI.Driver, Handle: pv.Spec.CSI.VolumeHandle, Name: pv.Name}
}

// besidesPV returns the holders of a PersistentVolume's storage without itself.
func besidesPV(pv *corev1.PersistentVolume, holders []reconcile.Holder) []reconcile.Holder {
	return slices.DeleteFunc(holders, func(h reconcile.Holder) bool { return h.Kind == reconcile.KindPV && h.Name == pv.Name })
}

// orphansOf returns requests for the PersistentVolumes of a driver that have PaV's finalizer. They may wait for a
// provisioner of that name.
func (r *Reconciler) orphansOf(ctx context.Context, driver string) []ctrl.Request {
	return r.pvsBy(ctx, reconcile.HeldPVsByDriver, driver)
}

// pvsBy returns requests for the PersistentVolumes of a driver that an index finds.
func (r *Reconciler) pvsBy(ctx context.Context, index, driver string) []ctrl.Request {
	pvs := &corev1.PersistentVolumeList{}
	if err := r.Client.List(ctx, pvs, client.MatchingFields{index: driver}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look PersistentVolumes up", observability.Provisioner, driver)
		return nil
	}
	var requests []ctrl.Request
	for i := range pvs.Items {
		requests = append(requests, named(pvs.Items[i].Name)...)
	}
	return requests
}
