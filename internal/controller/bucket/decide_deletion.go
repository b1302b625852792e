package bucket

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
)

// releasedTable is for a bucket whose claim is gone, and whose deletion has not begun.
var releasedTable = table{
	{Name: "the pod of a bucket that is not wanted was not created", When: func(o observation) bool {
		return o.record.Status.Pod != nil && waitsForSlot(o)
	}, Then: to(stepDropPod)},
	{Name: "the pod of a bucket that is not wanted runs", When: pod(attempt.Running, attempt.Ready), Then: to(rule.StopPod)},
	{Name: "the pod of a bucket that is not wanted is being deleted", When: pod(attempt.Stopping), Then: stopping(pavv1.BucketDeleted)},
	{Name: "the result of the pod of a bucket that is not wanted is not reported", When: func(o observation) bool {
		return o.at(pavv1.BucketCreating) && o.record.Status.Pod != nil && o.awaitsReport()
	}, Then: reporting(pavv1.BucketDeleted)},
	{Name: "a pod may have created the bucket that is not wanted", When: func(o observation) bool { return o.pending() && o.record.Status.Pod != nil }, Then: to(stepRevert)},
	{Name: "the bucket is still accessed", When: func(o observation) bool { return len(o.accesses) > 0 }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.BucketDeleted, "StillAccessed", fmt.Sprintf("%s has access to the bucket; it is deleted after that is revoked", o.accesses[0]), false)
	}},
	{Name: "the bucket existed before the claim", When: observation.isExisting, Then: to(stepForget)},
	{Name: "a bucket may exist that nobody can prove to be the claim's", When: func(o observation) bool { return o.pending() && o.record.Status.MayExist }, Then: to(stepRetain)},
	{Name: "no bucket was created", When: observation.pending, Then: to(stepForget)},
	{Name: "the bucket is to be retained", When: observation.retains, Then: to(stepRetain)},
	{Name: "the bucket is to be deleted", When: rule.Always[observation], Then: to(stepMarkDeleting)},
}

// retains reports whether the bucket stays when its claim is gone. One that PaV cannot prove to have made for the claim always does.
func (o observation) retains() bool {
	return o.record.Spec.ReclaimPolicy != pavv1.BucketDelete || !o.record.Status.Created
}

// retainedMeanwhile reports whether a bucket that is to be deleted is to be retained after all, and no deletion pod runs.
func (o observation) retainedMeanwhile() bool { return o.retains() && !o.attempt().HasBegun() }

// retainedTable is for a bucket that belongs to the administrator.
var retainedTable = table{
	{Name: "the record of a retained bucket is held", When: func(o observation) bool { return controllerutil.ContainsFinalizer(o.record, pavv1.BucketFinalizer) }, Then: to(stepRelease)},
	{Name: "the bucket stays", When: rule.Always[observation], Then: to(rule.Done)},
}

// deletionTable is for a bucket that is to be deleted.
var deletionTable = table{
	{Name: "the bucket is deleted", When: func(o observation) bool { return o.at(pavv1.BucketDeletedStep) }, Then: to(stepForget)},
	{Name: "the bucket is accessed although it is to be deleted", When: func(o observation) bool { return len(o.accesses) > 0 && !o.attempt().HasBegun() }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.BucketDeleted, "StillAccessed", fmt.Sprintf("%s has access to the bucket; it is deleted after that is revoked", o.accesses[0]), false)
	}},
	{Name: "the deletion pod of a bucket to retain was not created", When: func(o observation) bool { return o.retainedMeanwhile() && o.record.Status.Pod != nil }, Then: to(stepDropPod)},
	{Name: "the bucket is to be retained after all", When: observation.retainedMeanwhile, Then: to(stepRetain)},
	{Name: "another record has the bucket", When: func(o observation) bool { return o.owner != "" && !o.attempt().HasBegun() }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.BucketDeleted, "StillInUse", fmt.Sprintf("PavBucket %q has the same bucket, %q: delete that first, or set spec.reclaimPolicy of this one to Retain", o.owner, o.record.Status.BucketID), true)
	}},
	{Name: "the bucket is to be deleted now", When: rule.Always[observation], Then: deletionPodTable.Decide},
}

// deletionPodTable is for a bucket that is to be deleted, or whose creation is to be reverted.
var deletionPodTable = table{
	{Name: "there is no provisioner to delete with", When: func(o observation) bool { return o.provisioner == nil && waitsForSlot(o) }, Then: func(o observation) rule.Decision {
		return rule.InDoubt(rule.Waiting(pavv1.BucketDeleted, "NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, and only it defines how to delete the bucket: create it again; or delete bucket %q by hand, then remove the finalizer from the PavBucket",
			o.record.Spec.Provisioner, o.record.Status.BucketID), true))
	}},
	{Name: "there is nothing to delete", When: func(o observation) bool { return o.record.Status.Pod == nil && !o.hasDeletionPod() }, Then: deleted},
	{Name: "another record has what is to be reverted", When: func(o observation) bool { return o.reverting() && !o.attempt().HasBegun() && o.owner != "" }, Then: to(stepReverted)},
	{Name: "the next deletion pod is not due", When: func(o observation) bool { return o.record.Status.Pod == nil && deletionBackoff(o) > 0 }, Then: rule.Again(deletionBackoff)},
	{Name: "a deletion pod is due", When: func(o observation) bool { return o.record.Status.Pod == nil }, Then: to(stepDelete)},
	{Name: "the deletion pod waits for a slot", When: waitsForSlot, Then: queued(pavv1.BucketDeleted)},
	{Name: "the deletion pod runs", When: pod(attempt.Running), Then: running(pavv1.BucketDeleted)},
	{Name: "the deletion pod is being deleted", When: pod(attempt.Stopping), Then: stopping(pavv1.BucketDeleted)},
	{Name: "the result of the deletion pod is not reported", When: pod(attempt.Reporting), Then: reporting(pavv1.BucketDeleted)},
	{Name: "the deletion pod succeeded", When: pod(attempt.Succeeded), Then: deleted},
	{Name: "the deletion pod failed", When: rule.Always[observation], Then: to(stepRecordFailure)},
}

// deleted decides about a bucket that is deleted, or whose creation is reverted.
func deleted(o observation) rule.Decision {
	if o.reverting() {
		return rule.Decision{Step: stepReverted}
	}
	return rule.Decision{Step: stepMarkDeleted}
}

func (o observation) hasDeletionPod() bool {
	d := o.provisioner.Spec.BucketDeletion
	return d != nil && d.PodTemplate != nil
}

// deletionBackoff returns how long the next deletion pod has to wait. It does not wait if the definition has changed since the last one.
func deletionBackoff(o observation) time.Duration {
	status := &o.record.Status
	if status.DeletionFailure == nil || o.provisioner == nil || status.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	return o.retryIn(status.DeletionAttempt, status.DeletionFailure)
}
