package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// writePV writes the PersistentVolume. If one of its name exists, an earlier pass wrote it, or it is a conflict that the next
// decision reports.
//
// Protocol: "When this fails, it SHOULD retry creating the PV again few times." It is retried as long
// as the claim exists; when the claim is deleted, "it MUST delete the storage asset".
func (r *Reconciler) writePV(ctx context.Context, o observation, d decision) error {
	if err := r.checkWanted(ctx, o, d); err != nil {
		return err
	}
	pv, err := podplan.PersistentVolume(o.volume)
	if err != nil {
		return r.rejectPV(ctx, o, err)
	}
	switch err := r.Client.Create(ctx, pv); {
	case err == nil:
		o.pv = pv
		if err := r.markReady(ctx, o, decision{}); !errors.Is(err, reconcile.ErrStale) {
			return err
		}
		return r.withdrawPV(ctx, o.volume, pv)
	case apierrors.IsAlreadyExists(err):
		return reconcile.ErrStale
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return r.rejectPV(ctx, o, err)
	default:
		return fmt.Errorf("writing PersistentVolume %q: %w", pv.Name, err)
	}
}

// withdrawPV deletes a PersistentVolume that was just written if its PavVolume is gone. An agent that is not the leader any
// more may write one after the leader has deleted the storage and the PavVolume: no claim would ever be bound to it, and no
// PavVolume would delete it. It is deleted only as it was written, so no claim is bound to it. What else follows is that of
// a PersistentVolume without a PavVolume: see settleOrphan.
func (r *Reconciler) withdrawPV(ctx context.Context, volume *pavv1.PavVolume, pv *corev1.PersistentVolume) error {
	live, err := reconcile.Optional(ctx, r.Live, client.ObjectKeyFromObject(volume), &pavv1.PavVolume{})
	if err != nil {
		return err
	}
	if live != nil && live.UID == volume.UID {
		return reconcile.ErrStale
	}
	if err := r.Client.Delete(ctx, pv, exactly(pv)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting PersistentVolume %q, whose PavVolume is gone: %w", pv.Name, err)
	}
	left, err := reconcile.Optional(ctx, r.Live, client.ObjectKeyFromObject(pv), &corev1.PersistentVolume{})
	if err != nil {
		return err
	}
	if left != nil && left.UID == pv.UID && reconcile.IsHeld(left) {
		if err := r.releasePV(ctx, left); err != nil {
			return err
		}
	}
	return reconcile.ErrStale
}

// checkWanted asks the API server whether the volume is still needed, and no other object uses its storage: once the
// PersistentVolume exists, a claim is bound to it and used.
func (r *Reconciler) checkWanted(ctx context.Context, o observation, d decision) error {
	live, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	return r.checkAlone(ctx, live)
}

// rejectPV reports that the API server rejects the PersistentVolume. It is tried again with backoff, as PaV does not watch
// everything that could change the answer.
func (r *Reconciler) rejectPV(ctx context.Context, o observation, reason error) error {
	d := rule.Waiting(pavv1.VolumeProvisioned, "Refused", fmt.Sprintf("writing PersistentVolume %q: %s", o.volume.Name, reason), true)
	if failed := r.patchCondition(ctx, o.volume, d); failed != nil {
		return failed
	}
	r.tellClaimOnce(o.volume, d.Message)
	return &reconcile.Later{After: r.rejections.When(o.volume.Name)}
}

// markReady records that the PersistentVolume exists, with its handle and capacity.
func (r *Reconciler) markReady(ctx context.Context, o observation, d decision) error {
	if err := r.checkOver(ctx, o, d); err != nil {
		return err
	}
	r.rejections.Forget(o.volume.Name)
	pv := o.ownPV()
	capacity := pv.Spec.Capacity[corev1.ResourceStorage]
	if has := o.volume.Status.Capacity; has != nil && has.Cmp(capacity) > 0 && !o.pending() && !o.restored() {
		capacity = *has // it has grown, and the PersistentVolume was released, or removed, before that was written to it
	}
	pending, restored := o.pending(), o.restored()
	err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		clearDeletion(status)
		status.Phase, status.RecordUID = pavv1.VolumeReady, o.volume.UID
		status.Handle = pv.Spec.CSI.VolumeHandle
		status.Capacity = &capacity
		if class := pv.Spec.VolumeAttributesClassName; restored && class != nil && *class != o.attributesClassHad() {
			status.Attributes = &pavv1.VolumeAttributes{Class: *class} // of a later time; its parameters are not known
		}
		if o.volume.Spec.Source != nil && status.Attempt == 0 { // it was restored without its status
			status.DependsOnSource = o.provisioner == nil || dependsOnSource(o.provisioner)
		}
		status.Plan, status.Definition, status.Failure, status.Conflict = nil, nil, nil, nil
		meta.RemoveStatusCondition(&status.Conditions, pavv1.VolumeProvisioned) // so that the new condition has the time of this write
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: pavv1.VolumeProvisioned, Status: metav1.ConditionTrue,
			Reason: "Provisioned", Message: "the PersistentVolume exists", ObservedGeneration: o.volume.Generation})
	})
	if err == nil && pending {
		r.Events.Eventf(claimObject(o.volume), corev1.EventTypeNormal, protocol.ProvisioningSucceeded, "Successfully provisioned volume %s", o.volume.Name)
		ctrl.LoggerFrom(ctx).Info("provisioned a volume", observability.Duration, r.since(o.volume.CreationTimestamp))
	}
	return err
}
