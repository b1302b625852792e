package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
)

// align makes reclaim policy and finalizers agree. Each object has its own write; where the second
// fails, the next pass makes it.
func (r *Reconciler) align(ctx context.Context, o observation, _ decision) error {
	c := alignment(o)
	if o.deleting() || c.policy == corev1.PersistentVolumeReclaimDelete {
		// This write may remove the record, and with it the reclaim policy; or it may replace an administrator's Retain by the
		// policy of a PersistentVolume that is gone by now.
		live := o
		if err := r.gatherObjects(ctx, r.Live, &live); err != nil {
			return err
		}
		if alignment(live) != c {
			return reconcile.ErrStale
		}
	}
	volume := o.volume.DeepCopy()
	if c.policy != "" {
		volume.Spec.ReclaimPolicy = c.policy
	}
	applyFinalizer(volume, pavv1.VolumeFinalizer, c.volume)
	if err := r.patchVolume(ctx, o.volume, volume); err != nil {
		return err
	}
	if c.pv == keep && c.pvPolicy == "" {
		return nil
	}
	pv := o.pv.DeepCopy()
	if c.pvPolicy != "" {
		pv.Spec.PersistentVolumeReclaimPolicy = c.pvPolicy
	}
	applyFinalizer(pv, pavv1.PVFinalizer, c.pv)
	return r.patch(ctx, o.pv, pv)
}

func applyFinalizer(object client.Object, finalizer string, c finalizerChange) {
	switch c {
	case keep:
	case add:
		controllerutil.AddFinalizer(object, finalizer)
	case remove:
		controllerutil.RemoveFinalizer(object, finalizer)
	}
}

// patchVolume is patch for the PavVolume.
func (r *Reconciler) patchVolume(ctx context.Context, before, after *pavv1.PavVolume) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if err := r.patch(ctx, before, after); err != nil {
		return err
	}
	r.expectations.Replace(before.Name, before.ResourceVersion, after.ResourceVersion)
	return nil
}

// patch writes what changed of an object, unless someone else wrote it meanwhile.
func (r *Reconciler) patch(ctx context.Context, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating %T %q: %w", after, after.GetName(), err)
	}
	return nil
}

// markDeleting records that the storage will be deleted, before any deletion pod runs.
func (r *Reconciler) markDeleting(ctx context.Context, o observation, d decision) error {
	return r.markPhase(ctx, o, d, pavv1.VolumeDeleting)
}

// retain records that the storage now belongs to the administrator.
func (r *Reconciler) retain(ctx context.Context, o observation, d decision) error {
	return r.markPhase(ctx, o, d, pavv1.VolumeRetained)
}

func (r *Reconciler) markPhase(ctx context.Context, o observation, d decision, phase pavv1.VolumePhase) error {
	if err := r.checkOver(ctx, o, d); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		status.Phase = phase
		status.Handle, _ = o.identity() // a restored record may have lost it
		kept := keptModification(status)
		clearChanges(status)
		if phase == pavv1.VolumeRetained {
			status.Modification = kept
		}
		damaged := isBeingDeleted(o.volume)
		clearDeletion(status)
		status.DeletionBegun = damaged // until a claim has the volume again, it is no source
		if phase == pavv1.VolumeDeleting {
			setCondition(o.volume, status, pavv1.VolumeDeleted, string(pavv1.StepDeleting), "the storage is to be deleted") // its time is when that began
		}
	})
}

// clearDeletion removes the record of a deletion or revert that is over.
func clearDeletion(status *pavv1.PavVolumeStatus) {
	clearAttempts(status)
	meta.RemoveStatusCondition(&status.Conditions, pavv1.VolumeDeleted)
}

// clearAttempts removes the record of the attempts to delete. The condition stays: its time is when the deletion began.
func clearAttempts(status *pavv1.PavVolumeStatus) {
	status.Step, status.Pod = "", nil
	status.DeletionAttempt, status.DeletionFailure, status.DeletionBegun = 0, nil, false
}

// revert begins to revert a creation that failed, or whose claim is gone. It records the handle of the storage, which no
// other object uses or can get from then on.
func (r *Reconciler) revert(ctx context.Context, o observation, d decision) error {
	if err := r.confirm(ctx, o, d); err != nil {
		return err
	}
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	handle, _ := o.identity()
	if err := r.reserve(ctx, o, "the handle to revert", handle); podplan.IsRefusal(err) {
		return reconcile.ErrStale // the next decision is about the other object
	} else if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		status.Step, status.Pod, status.Handle = pavv1.StepReverting, nil, handle
	})
}

// markReverted records that no storage of the volume is left, or ever was.
func (r *Reconciler) markReverted(ctx context.Context, o observation, d decision) error {
	// A PersistentVolume that was written meanwhile is deleted first. Without a pod, the definition must still have no
	// deletion pod.
	if err := r.confirm(ctx, o, d); err != nil {
		return err
	}
	r.finders.forget(o.volume.Name) // they are looked up now that the storage is gone
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		if status.Pod != nil {
			status.FormerHandle = status.Handle
			if c := status.Conflict; c != nil && c.Handle == status.Handle {
				status.Conflict = nil // an earlier attempt is reverted, too
			}
		}
		clearMade(status)
	}); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("reverted the creation of a volume")
	return nil
}

// delete records a deletion pod, from the current definition, and that the storage will be deleted.
func (r *Reconciler) delete(ctx context.Context, o observation, d decision) error {
	step := pavv1.StepReverting
	if !o.pending() {
		step = pavv1.StepDeleting
	}
	if err := r.checkDeletable(ctx, o, d); err != nil {
		return err
	}
	attempt := func(status *pavv1.PavVolumeStatus) {
		if step == pavv1.StepDeleting && status.Phase != pavv1.VolumeDeleting {
			clearChanges(status)
			clearDeletion(status) // the condition has the time of this write
			status.Phase = pavv1.VolumeDeleting
		}
		status.DeletionAttempt++
		status.LastHandledRetry = o.volume.Annotations[pavv1.RetryAnnotation]
		status.ProvisionerGeneration = o.provisioner.Generation
	}
	request, err := r.deletionRequest(ctx, o)
	if err != nil {
		return err
	}
	pod, err := request.Deletion(ctx, o.provisioner.Spec.VolumeDeletion, o.volume.Status.Handle)
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowDeletion, attempt, err)
	}
	return r.intend(ctx, o, intent{step: step, pod: pod, generation: o.provisioner.Generation, change: attempt})
}

// checkDeletable asks the API server whether the storage may be deleted, or its creation reverted.
func (r *Reconciler) checkDeletable(ctx context.Context, o observation, d decision) error {
	live, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	return r.checkAlone(ctx, live)
}

// markDeleted records that the deletion pod has succeeded, or that there is none. Only objects are left, for which neither
// the definition nor the reclaim policy matters any more.
func (r *Reconciler) markDeleted(ctx context.Context, o observation, d decision) error {
	if o.volume.Status.Pod == nil {
		live, err := r.confirmed(ctx, o, d)
		if err != nil {
			return err
		}
		if err := r.checkUnstaged(ctx, live); err != nil {
			return err
		}
	}
	r.finders.forget(o.volume.Name) // they are looked up now that the storage is gone
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		if status.Pod != nil && status.FormerHandle == "" { // else it keeps two handles, and waits for the finders of both
			status.FormerHandle = status.Handle
		}
		clearAttempts(status)
		status.Phase, status.Step = pavv1.VolumeDeleting, pavv1.StepDeleted
		if begun := meta.FindStatusCondition(status.Conditions, pavv1.VolumeDeleted); begun != nil {
			begun.Message = "the storage is deleted"
		}
	})
}

// deletePV deletes the PersistentVolume of a volume whose storage is gone: first the object, then the finalizer. If the
// agent is killed between the two, no PersistentVolume is left that looks usable.
//
// Protocol: "Only after the storage asset was successfully deleted, it MUST delete the PV object in Kubernetes."
func (r *Reconciler) deletePV(ctx context.Context, o observation, _ decision) error {
	if o.pv.DeletionTimestamp == nil {
		if err := r.checkStill(ctx, o); err != nil {
			return err
		}
		if err := r.Client.Delete(ctx, o.pv, exactly(o.pv)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting PersistentVolume %q: %w", o.pv.Name, err)
		}
		return nil // the deletion is an event, and brings the next pass
	}
	return r.releasePV(ctx, o.pv)
}

// releasePV removes PaV's finalizer from a PersistentVolume.
func (r *Reconciler) releasePV(ctx context.Context, pv *corev1.PersistentVolume) error {
	released := pv.DeepCopy()
	if !controllerutil.RemoveFinalizer(released, pavv1.PVFinalizer) {
		return nil // only Kubernetes' own finalizer is left, which Kubernetes removes
	}
	return r.patch(ctx, pv, released)
}

// checkStill asks the API server whether the volume is still staged, unless its deletion pod has succeeded: that was asked
// before the pod ran.
func (r *Reconciler) checkStill(ctx context.Context, o observation) error {
	if o.volume.Status.Step == pavv1.StepDeleted {
		return nil
	}
	return r.checkUnstaged(ctx, o)
}

// exactly makes a deletion fail if the object was replaced, or has changed.
func exactly(object client.Object) client.Preconditions {
	return client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}
}

// remove deletes a PavVolume, and reports whether it was still there. The finalizer is removed first: no other process deletes the
// object in between, and an agent that is killed there finds a volume to delete again.
func (r *Reconciler) remove(ctx context.Context, volume *pavv1.PavVolume) (removed bool, err error) {
	released := volume.DeepCopy()
	controllerutil.RemoveFinalizer(released, pavv1.VolumeFinalizer)
	if err := r.patchVolume(ctx, volume, released); err != nil {
		return false, err
	}
	if volume.DeletionTimestamp != nil {
		return released.ResourceVersion != volume.ResourceVersion, nil
	}
	if err := r.Client.Delete(ctx, released, exactly(released)); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("deleting PavVolume %q: %w", volume.Name, err)
	}
	r.expectations.Replace(volume.Name, released.ResourceVersion, "")
	return true, nil
}

// forget deletes the PavVolume, which is all that PaV knows of the volume. So the API server is asked, not the cache,
// whether it is not needed any more.
func (r *Reconciler) forget(ctx context.Context, o observation, d decision) error {
	live, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	if !o.pending() {
		if err := r.checkStill(ctx, live); err != nil {
			return err
		}
	}
	r.reportConflictLeft(ctx, o) // before the record is gone: better twice than never
	if deleted, err := r.remove(ctx, o.volume); err != nil || !deleted {
		return err // or the cache does not show yet that an earlier pass did it, and said so
	}
	var keys []any
	if c := meta.FindStatusCondition(o.volume.Status.Conditions, pavv1.VolumeDeleted); c != nil {
		keys = []any{observability.Duration, r.since(c.LastTransitionTime)}
	}
	ctrl.LoggerFrom(ctx).Info("deleted a volume", keys...)
	return nil
}
