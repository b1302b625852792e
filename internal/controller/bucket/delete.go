package bucket

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
)

// revert begins to revert a creation that is not needed any more.
func (r *Reconciler) revert(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.runs.CheckNotCreated(ctx, o.record, o.Pods); err != nil {
		return err
	}
	told, err := r.told(ctx, o)
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, told)
}

// told records what is known of what the pod of a creation that failed or is not needed any more has made. It is reverted only if the
// bucket is certainly the claim's, and if no other record has it; else the record says that it may exist.
func (r *Reconciler) told(ctx context.Context, o observation) (change, error) {
	if o.at(pavv1.BucketValidating) || !o.mayHaveRun() {
		return func(status *pavv1.PavBucketStatus) { status.Step, status.Pod = "", nil }, nil
	}
	return r.toldOf(ctx, o, madeBy(o.record, o.record.Status.PlannedBucketID, o.pod()), o.created())
}

// toldOf is told of a bucket with an identifier. Proven says that the pod has said that the bucket is the claim's.
func (r *Reconciler) toldOf(ctx context.Context, o observation, id string, proven bool) (change, error) {
	if !podplan.IsOfClaim(o.record, id) && !proven {
		r.tellMayExist(o, id)
		return func(status *pavv1.PavBucketStatus) {
			status.Step, status.Pod, status.MayExist, status.MayExistID = "", nil, true, id
		}, nil
	}
	holder, err := r.liveHolder(ctx, o.record, reconcile.BucketStorage(o.record.Spec.Provisioner, o.record.Spec.Store, id))
	if err != nil {
		return nil, err
	}
	if holder != "" {
		r.tellLeft(o, id, holder) // before the record loses the pod: better twice than never
		return func(status *pavv1.PavBucketStatus) { status.Step, status.Pod = "", nil }, nil
	}
	return func(status *pavv1.PavBucketStatus) {
		status.Step, status.Pod, status.BucketID, status.Created = pavv1.BucketReverting, nil, id, true
	}, nil
}

// markReverted records that nothing of the creation is left.
func (r *Reconciler) markReverted(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, setReverted)
}

func setReverted(status *pavv1.PavBucketStatus) {
	clearDeletion(status)
	if status.MayExistID == status.BucketID { // else an earlier attempt may have made another bucket
		status.MayExist, status.MayExistID = false, ""
	}
	status.BucketID, status.PlannedBucketID, status.Created = "", "", false
}

// clearDeletion removes the record of a deletion or revert that is over.
func clearDeletion(status *pavv1.PavBucketStatus) {
	status.Step, status.Pod, status.DeletionAttempt, status.DeletionFailure = "", nil, 0, nil
	meta.RemoveStatusCondition(&status.Conditions, pavv1.BucketDeleted)
}

// markDeleting records that the bucket will be deleted, before any deletion pod runs.
func (r *Reconciler) markDeleting(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
		clearDeletion(status)
		status.Phase = pavv1.BucketDeleting
		setCondition(o.record, status, pavv1.BucketDeleted, "Deleting", "the bucket is to be deleted") // its time is when that began
	})
}

// retain records that the bucket now belongs to the administrator.
func (r *Reconciler) retain(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	id := reconcile.BucketID(o.record)
	reason, text := "Retained", fmt.Sprintf("bucket %q belongs to the administrator now; delete PavBucket %q when it is not to be known any more", id, o.record.Name)
	if o.pending() {
		id = cmp.Or(o.record.Status.MayExistID, id)
		reason, text = "MayExist", mayExistText(o.record, id)
	}
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
		clearDeletion(status)
		status.BucketID = id
		status.Phase, status.RetainedTime = pavv1.BucketRetained, new(metav1.NewTime(r.Now()))
		setCondition(o.record, status, pavv1.BucketDeleted, reason, text)
	}); err != nil {
		return err
	}
	r.tell(o, reason != "Retained", reason, text)
	return nil
}

func mayExistText(record *pavv1.PavBucket, id string) string {
	return fmt.Sprintf("bucket %q may exist: an attempt to create it failed, and nothing proves that it is claim %s/%s's, so it is not deleted; look for it",
		id, record.Spec.ClaimRef.Namespace, record.Spec.ClaimRef.Name)
}

// letGo lets the record of a retained bucket be deleted.
func (r *Reconciler) letGo(ctx context.Context, o observation, _ rule.Decision) error {
	released := o.record.DeepCopy()
	controllerutil.RemoveFinalizer(released, pavv1.BucketFinalizer)
	return r.patchRecord(ctx, o.record, released)
}

// delete records a deletion pod, from the current definition.
func (r *Reconciler) delete(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	step := pavv1.BucketDeletingStep
	if o.pending() {
		step = pavv1.BucketReverting
	}
	begin := func(status *pavv1.PavBucketStatus) {
		status.DeletionAttempt++
		status.LastHandledRetry = o.record.Annotations[pavv1.RetryAnnotation]
		status.ProvisionerGeneration = o.provisioner.Generation
	}
	request, err := r.requestOf(ctx, o)
	if err != nil {
		return err
	}
	pod, err := request.Delete(ctx)
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowBucketDeletion, begin, err)
	}
	if pod == nil {
		return r.finish(ctx, o)
	}
	return r.intend(ctx, o, step, pod, begin)
}

// finish records that there is nothing to delete: the template of the deletion pod yields none.
func (r *Reconciler) finish(ctx context.Context, o observation) error {
	if o.reverting() {
		return r.patchStatus(ctx, o.record, setReverted)
	}
	return r.patchStatus(ctx, o.record, setDeleted)
}

// markDeleted records that the bucket is deleted. Only objects are left.
func (r *Reconciler) markDeleted(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, setDeleted)
}

func setDeleted(status *pavv1.PavBucketStatus) {
	status.Step, status.Pod, status.DeletionAttempt, status.DeletionFailure = pavv1.BucketDeletedStep, nil, 0, nil
	if begun := meta.FindStatusCondition(status.Conditions, pavv1.BucketDeleted); begun != nil {
		begun.Message = "the bucket is deleted"
	}
}

// forget deletes the record, which is all that PaV knows of the bucket. The finalizer is removed first: an agent that is killed between
// the two finds a record to delete again.
func (r *Reconciler) forget(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.runs.CheckSeen(ctx, o.record, o.Pods, pavv1.WorkflowBucketCreation); err != nil {
		return err
	}
	released := o.record.DeepCopy()
	controllerutil.RemoveFinalizer(released, pavv1.BucketFinalizer)
	if err := r.patchRecord(ctx, o.record, released); err != nil || o.deleting() {
		return err
	}
	exactly := client.Preconditions{UID: new(released.UID), ResourceVersion: new(released.ResourceVersion)}
	if err := r.Client.Delete(ctx, released, exactly); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting PavBucket %q: %w", o.record.Name, err)
	}
	r.expectations.Replace(o.record.Name, released.ResourceVersion, "")
	ctrl.LoggerFrom(ctx).Info("forgot a bucket")
	return nil
}
