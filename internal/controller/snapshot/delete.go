package snapshot

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// align makes deletion policy and finalizer of the record agree with the VolumeSnapshotContent.
func (r *Reconciler) align(ctx context.Context, o observation, d rule.Decision) error {
	if o.policyNow() == pavv1.SnapshotPolicyDelete && o.record.Spec.DeletionPolicy != pavv1.SnapshotPolicyDelete {
		// It may replace an administrator's Retain by the policy of a VolumeSnapshotContent that is gone by now.
		if err := r.confirm(ctx, o, d.Step); err != nil {
			return err
		}
	}
	changed := o.record.DeepCopy()
	changed.Spec.DeletionPolicy = o.policyNow()
	if o.wantsFinalizer() {
		controllerutil.AddFinalizer(changed, pavv1.SnapshotFinalizer)
	} else {
		controllerutil.RemoveFinalizer(changed, pavv1.SnapshotFinalizer)
	}
	return r.patchRecord(ctx, o.record, changed)
}

// patchRecord writes what changed of a record besides its status, unless someone else wrote it meanwhile.
func (r *Reconciler) patchRecord(ctx context.Context, before, after *pavv1.PavSnapshot) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating PavSnapshot %q: %w", before.Name, err)
	}
	r.expectations.Replace(before.Name, before.ResourceVersion, after.ResourceVersion)
	return nil
}

// revert begins to revert a creation that is not needed any more. It records the handle of what the pod may have made, if it told one.
func (r *Reconciler) revert(ctx context.Context, o observation, d rule.Decision) error {
	if err := r.confirm(ctx, o, d.Step); err != nil {
		return err
	}
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	told, err := r.told(ctx, o)
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, told)
}

// told records what is known of what the pod of a creation that is to be reverted has made. What another object has is not deleted, and
// what has a handle that nobody knows cannot be, which is reported.
func (r *Reconciler) told(ctx context.Context, o observation) (change, error) {
	handle := ""
	if pod := o.pod(); pod != nil {
		if result, err := workflow.ResultOf(pod); err == nil && result != nil && workflow.CheckHandle(result.SnapshotHandle) == nil {
			handle = result.SnapshotHandle
		}
	}
	if planned := o.record.Status.PlannedHandle; planned != "" {
		handle = planned
	}
	others, err := r.holders(ctx, o.record, cmp.Or(handle, o.record.Name))
	if err != nil {
		return nil, err
	}
	if o.isHandleUnknown() {
		r.tellLeft(o) // before the record loses the pod: better twice than never
	}
	return func(status *pavv1.PavSnapshotStatus) {
		status.Step, status.Pod, status.Handle = pavv1.SnapshotReverting, nil, handle
		if len(others) > 0 {
			status.Step, status.Handle = "", ""
		}
	}, nil
}

// markReverted records that nothing of the creation is left.
func (r *Reconciler) markReverted(ctx context.Context, o observation, d rule.Decision) error {
	if o.record.Status.Pod == nil { // the definition must still have no deletion pod
		if err := r.confirm(ctx, o, d.Step); err != nil {
			return err
		}
	}
	return r.patchStatus(ctx, o.record, setReverted)
}

func setReverted(status *pavv1.PavSnapshotStatus) {
	clearDeletion(status)
	status.Handle, status.PlannedHandle = "", ""
}

// markDeleting records that the storage will be deleted, before any deletion pod runs.
func (r *Reconciler) markDeleting(ctx context.Context, o observation, d rule.Decision) error {
	return r.markPhase(ctx, o, d, pavv1.SnapshotDeleting)
}

// retain records that the storage now belongs to the administrator.
func (r *Reconciler) retain(ctx context.Context, o observation, d rule.Decision) error {
	return r.markPhase(ctx, o, d, pavv1.SnapshotRetained)
}

func (r *Reconciler) markPhase(ctx context.Context, o observation, d rule.Decision, phase pavv1.SnapshotPhase) error {
	if err := r.confirm(ctx, o, d.Step); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) {
		clearDeletion(status)
		status.RecordUID = o.record.UID
		if handle := o.existing(); status.Handle == "" && handle != "" {
			status.Handle = handle
		}
		status.Phase, status.RetainedTime = phase, nil
		if phase == pavv1.SnapshotRetained {
			status.RetainedTime = new(metav1.NewTime(r.Now()))
		} else {
			setCondition(o.record, status, pavv1.SnapshotDeleted, "Deleting", "the storage is to be deleted") // its time is when that began
		}
	})
}

// clearDeletion removes the record of a deletion or revert that is over.
func clearDeletion(status *pavv1.PavSnapshotStatus) {
	status.Step, status.Pod, status.DeletionAttempt, status.DeletionFailure = "", nil, 0, nil
	meta.RemoveStatusCondition(&status.Conditions, pavv1.SnapshotDeleted)
}

// delete records a deletion pod, from the current definition.
func (r *Reconciler) delete(ctx context.Context, o observation, d rule.Decision) error {
	if err := r.confirm(ctx, o, d.Step); err != nil {
		return err
	}
	if err := r.checkAlone(ctx, o.record); err != nil {
		return err
	}
	if err := r.checkUnneeded(ctx, o); err != nil {
		return err
	}
	step := pavv1.SnapshotDeletingStep
	if o.pending() {
		step = pavv1.SnapshotReverting
	}
	begin := func(status *pavv1.PavSnapshotStatus) {
		status.DeletionAttempt++
		status.LastHandledRetry = o.record.Annotations[pavv1.RetryAnnotation]
		status.ProvisionerGeneration = o.provisioner.Generation
	}
	pod, err := r.requestOf(o).Delete(ctx, o.provisioner.Spec.SnapshotDeletion, o.record.Status.Handle)
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowSnapshotDeletion, begin, err)
	}
	if pod == nil {
		return r.finish(ctx, o)
	}
	return r.intend(ctx, o, intent{step: step, pod: pod, change: begin})
}

// finish records that there is nothing to delete: the template of the deletion pod yields none.
func (r *Reconciler) finish(ctx context.Context, o observation) error {
	if o.reverting() {
		return r.patchStatus(ctx, o.record, setReverted)
	}
	return r.patchStatus(ctx, o.record, setDeleted)
}

// markDeleted records that the storage is deleted. Only objects are left.
func (r *Reconciler) markDeleted(ctx context.Context, o observation, d rule.Decision) error {
	if o.record.Status.Pod == nil {
		if err := r.confirm(ctx, o, d.Step); err != nil {
			return err
		}
		if err := r.checkUnneeded(ctx, o); err != nil {
			return err
		}
	}
	return r.patchStatus(ctx, o.record, setDeleted)
}

// checkUnneeded asks the API server, before it is recorded that the storage of a snapshot is deleted, whether a volume needs it. If one
// does, the cache is behind, and the error is reconcile.ErrStale. A volume that is requested later becomes a reader before its pod is
// recorded, for which no deletion pod may be recorded.
func (r *Reconciler) checkUnneeded(ctx context.Context, o observation) error {
	if o.pending() || reading.IsBeingDeleted(o.record) {
		return nil
	}
	volumes, err := r.readers().LiveDependents(ctx, o.record.Spec.Provisioner, o.key())
	if err == nil && len(volumes) > 0 {
		err = reconcile.ErrStale
	}
	return err
}

func setDeleted(status *pavv1.PavSnapshotStatus) {
	status.Step, status.Pod, status.DeletionAttempt, status.DeletionFailure = pavv1.SnapshotDeletedStep, nil, 0, nil
	if begun := meta.FindStatusCondition(status.Conditions, pavv1.SnapshotDeleted); begun != nil {
		begun.Message = "the storage is deleted"
	}
}

// forget deletes the record, which is all that PaV knows of the snapshot.
func (r *Reconciler) forget(ctx context.Context, o observation, d rule.Decision) error {
	if err := r.confirm(ctx, o, d.Step); err != nil {
		return err
	}
	if o.is(pavv1.SnapshotDeleting) {
		if err := r.forgetRetained(ctx, o.record); err != nil {
			return err
		}
	}
	if err := r.remove(ctx, o.record); err != nil || o.deleting() {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("deleted a snapshot")
	return nil
}

// remove deletes a record. Its finalizer is removed first: a record that is being deleted has its storage deleted once more, and an
// agent that is killed between the two finds a record to delete again.
func (r *Reconciler) remove(ctx context.Context, record *pavv1.PavSnapshot) error {
	released := record.DeepCopy()
	controllerutil.RemoveFinalizer(released, pavv1.SnapshotFinalizer)
	if err := r.patchRecord(ctx, record, released); err != nil || record.DeletionTimestamp != nil {
		return err
	}
	exactly := client.Preconditions{UID: new(released.UID), ResourceVersion: new(released.ResourceVersion)}
	if err := r.Client.Delete(ctx, released, exactly); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting PavSnapshot %q: %w", record.Name, err)
	}
	r.expectations.Replace(record.Name, released.ResourceVersion, "")
	return nil
}

// checkNotCreated asks the API server whether a pod that is about to be removed from the record was created after all.
func (r *Reconciler) checkNotCreated(ctx context.Context, o observation) error {
	return r.runs.CheckNotCreated(ctx, o.record, o.Pods)
}
