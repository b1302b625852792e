package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/protocol"
	"github.com/albertofaria/pav/internal/controller/retry"
	"github.com/albertofaria/pav/internal/workflow"
)

// wait reports what the volume waits for, once for each thing that it waits for.
func (r *Reconciler) wait(ctx context.Context, o observed, d decision) error {
	if hasCondition(o.volume, pavv1.VolumeDeleted, d) {
		return nil
	}
	if err := r.patchCondition(ctx, o.volume, pavv1.VolumeDeleted, d); err != nil {
		return err
	}
	eventType, reason := corev1.EventTypeNormal, protocol.VolumeDeletionWaiting
	if d.warning {
		eventType, reason = corev1.EventTypeWarning, protocol.VolumeFailedDelete
	}
	r.Events.Event(o.volume, eventType, reason, d.message)
	if pv := o.ownPV(); pv != nil {
		r.Events.Event(pv, eventType, reason, d.message)
	}
	return nil
}

// align makes reclaim policy and finalizers agree. Each object has its own write; where the second
// fails, the next pass makes it.
func (r *Reconciler) align(ctx context.Context, o observed) error {
	c := alignment(o)
	volume := o.volume.DeepCopy()
	if c.policy != "" {
		volume.Spec.ReclaimPolicy = c.policy
	}
	applyFinalizer(volume, pavv1.VolumeFinalizer, c.volume)
	if err := r.patch(ctx, o.volume, volume); err != nil {
		return err
	}
	if c.pv == keep {
		return nil
	}
	pv := o.pv.DeepCopy()
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

// patch writes what changed of an object, unless somebody else wrote it meanwhile.
func (r *Reconciler) patch(ctx context.Context, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating %T %q: %w", after, after.GetName(), err)
	}
	return nil
}

// markPhase records that the volume enters a phase.
func (r *Reconciler) markPhase(ctx context.Context, o observed, phase pavv1.VolumePhase) error {
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		status.Phase = phase
		meta.RemoveStatusCondition(&status.Conditions, pavv1.VolumeDeleted)
	})
}

// deletePV deletes the PersistentVolume of a volume whose storage is gone: first the object, then
// the finalizer, so that a crash in between leaves nothing that looks like an unprotected volume.
//
// Protocol: "Only after the storage asset was successfully deleted, it MUST delete the PV object in Kubernetes."
func (r *Reconciler) deletePV(ctx context.Context, o observed) error {
	if err := r.checkHolders(ctx, o.volume); err != nil {
		return err
	}
	if o.pv.DeletionTimestamp == nil {
		if err := r.Client.Delete(ctx, o.pv, exactly(o.pv)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting PersistentVolume %q: %w", o.pv.Name, err)
		}
		return nil // the deletion is an event, and brings the next pass
	}
	pv := o.pv.DeepCopy()
	if !controllerutil.RemoveFinalizer(pv, pavv1.PVFinalizer) {
		return nil // Kubernetes' own protection remains, and goes by itself
	}
	return r.patch(ctx, o.pv, pv)
}

// exactly makes a deletion fail where the object is another one by now, or has changed.
func exactly(object client.Object) client.Preconditions {
	return client.Preconditions{UID: new(object.GetUID()), ResourceVersion: new(object.GetResourceVersion())}
}

// checkHolders asks the API server whether the volume is still staged: data is never deleted on a cache's word.
func (r *Reconciler) checkHolders(ctx context.Context, volume *pavv1.PavVolume) error {
	names, err := holders(ctx, r.Live, client.MatchingLabels{pavv1.VolumeLabel: workflow.Hash(volume.Name)})
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return retry.ErrStale
	}
	return nil
}

// forget deletes the PavVolume, after which PaV knows nothing of the volume any more. So the API
// server is asked, not the cache, whether there is nothing left to know.
func (r *Reconciler) forget(ctx context.Context, o observed) error {
	if err := r.checkForgettable(ctx, o); err != nil {
		return err
	}
	if !o.deleting() {
		if err := r.Client.Delete(ctx, o.volume, exactly(o.volume)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting PavVolume %q: %w", o.volume.Name, err)
		}
		return nil
	}
	volume := o.volume.DeepCopy()
	if !controllerutil.RemoveFinalizer(volume, pavv1.VolumeFinalizer) {
		return nil
	}
	if err := r.patch(ctx, o.volume, volume); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("deleted a volume", "provisioner", o.volume.Spec.Provisioner, "claim", claimKey(o.volume))
	return nil
}

func (r *Reconciler) checkForgettable(ctx context.Context, o observed) error {
	var err error
	live := o
	if live.pv, err = optional(ctx, r.Live, types.NamespacedName{Name: o.volume.Name}, &corev1.PersistentVolume{}); err != nil {
		return err
	}
	if live.ownPV() != nil {
		return retry.ErrStale
	}
	if !o.pending() {
		return r.checkHolders(ctx, o.volume)
	}
	claim, err := optional(ctx, r.Live, claimKey(o.volume), &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	live.claim = stateOf(claim, o.volume)
	if decide(live).step != stepForget {
		return retry.ErrStale
	}
	return nil
}
