package snapshot

import (
	"fmt"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/workflow"
)

// unwantedTable is for a snapshot that nobody wants any more, and whose deletion has not begun.
var unwantedTable = table{
	{Name: "the pod of a snapshot that is not wanted was not created", When: func(o observation) bool {
		return o.record.Status.Pod != nil && waitsForSlot(o)
	}, Then: to(stepDropPod)},
	{Name: "the pod of a snapshot that is not wanted runs", When: pod(attempt.Running, attempt.Ready), Then: to(rule.StopPod)},
	{Name: "the pod of a snapshot that is not wanted is being deleted", When: pod(attempt.Stopping), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideStopping(), pavv1.SnapshotDeleted)
	}},
	{Name: "the result of the pod of a snapshot that is not wanted is not reported", When: func(o observation) bool {
		return o.pending() && o.record.Status.Pod != nil && o.awaitsReport()
	}, Then: reporting(pavv1.SnapshotDeleted)},
	{Name: "a pod may have created the snapshot that is not wanted", When: func(o observation) bool { return o.pending() && o.record.Status.Pod != nil }, Then: to(stepRevert)},
	{Name: "no snapshot was created", When: func(o observation) bool { return o.pending() && !o.exists() }, Then: releaseTable.Decide},
	{Name: "the snapshot is to be retained", When: observation.retains, Then: to(stepRetain)},
	// Its VolumeSnapshot cannot be known any more, nor whether another VolumeSnapshotContent is about to take its place.
	{Name: "an administrator's VolumeSnapshotContent was removed", When: func(o observation) bool {
		return o.record.Spec.SnapshotHandle != "" && o.content == nil && !o.deleting()
	}, Then: to(stepRetain)},
	{Name: "the snapshot is to be deleted", When: rule.Always[observation], Then: to(stepMarkDeleting)},
}

// releaseTable is for a snapshot of which nothing is left but objects.
var releaseTable = table{
	{Name: "the VolumeSnapshotContent waits", When: observation.isHeld, Then: to(stepRelease)},
	{Name: "nothing is left of the snapshot", When: rule.Always[observation], Then: to(stepForget)},
}

// retainedTable is for a snapshot whose storage belongs to the administrator.
var retainedTable = table{
	{Name: "the VolumeSnapshotContent of a retained snapshot waits", When: observation.isHeld, Then: to(stepRelease)},
	{Name: "the retained snapshot is to be deleted after all", When: func(o observation) bool { return o.deleting() && !o.retains() }, Then: to(stepMarkDeleting)},
	{Name: "the snapshot stays", When: rule.Always[observation], Then: to(rule.Done)},
}

// deletionTable is for a snapshot whose storage is to be deleted.
var deletionTable = table{
	{Name: "the storage is deleted", When: func(o observation) bool { return o.record.Status.Step == pavv1.SnapshotDeletedStep }, Then: releaseTable.Decide},
	{Name: "the snapshot is to be retained after all", When: observation.retainedMeanwhile, Then: retainedMeanwhileTable.Decide},
	{Name: "another object has the snapshot", When: func(o observation) bool { return !o.attempt().HasBegun() && len(o.others) > 0 }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.SnapshotDeleted, "StillInUse", fmt.Sprintf("%s has the same snapshot, with the handle %q; the storage is deleted after that object: delete the object or, to keep the storage, set the deletionPolicy of %s to Retain",
			o.others[0], o.record.Status.Handle, o.policyHolder()), true)
	}},
	{Name: "a volume needs the snapshot", When: func(o observation) bool { return o.record.Status.Pod == nil && o.isNeeded() }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.SnapshotDeleted, "SourceOfVolumes", o.needText(), false)
	}},
	{Name: "the storage is to be deleted", When: rule.Always[observation], Then: deletionPodTable.Decide},
}

// retainedMeanwhileTable is for a snapshot that was to be deleted and is to be retained, before a deletion pod has begun.
var retainedMeanwhileTable = table{
	{Name: "no deletion pod is recorded", When: func(o observation) bool { return o.record.Status.Pod == nil }, Then: to(stepRetain)},
	{Name: "the deletion pod of a snapshot to retain was not created", When: waitsForSlot, Then: to(stepDropPod)},
	{Name: "the deletion pod of a snapshot to retain has not started", When: pod(attempt.Running), Then: to(rule.StopPod)},
	{Name: "the deletion pod of a snapshot to retain is being deleted", When: pod(attempt.Stopping), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideStopping(), pavv1.SnapshotDeleted)
	}},
	{Name: "the deletion pod of a snapshot to retain never ran", When: rule.Always[observation], Then: to(stepDropPod)},
}

// deletionPodTable is for a snapshot whose storage is to be deleted, or whose creation is to be reverted.
var deletionPodTable = table{
	{Name: "there is no provisioner to delete with", When: func(o observation) bool { return o.provisioner == nil && waitsForSlot(o) }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.SnapshotDeleted, "NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, and only it defines how to delete the snapshot: create it again; or delete by hand what its pods have made, then remove the finalizer from the PavSnapshot",
			o.record.Spec.Provisioner), true)
	}},
	{Name: "there is nothing to delete", When: func(o observation) bool { return o.record.Status.Pod == nil && !o.hasDeletionPod() }, Then: deleted},
	{Name: "another object has what is to be reverted", When: func(o observation) bool { return o.reverting() && !o.attempt().HasBegun() && len(o.others) > 0 }, Then: to(stepReverted)},
	{Name: "the next deletion pod is not due", When: func(o observation) bool { return o.record.Status.Pod == nil && deletionBackoff(o) > 0 }, Then: rule.Again(deletionBackoff)},
	{Name: "a deletion pod is due", When: func(o observation) bool { return o.record.Status.Pod == nil }, Then: to(stepDelete)},
	{Name: "the deletion pod waits for a slot", When: waitsForSlot, Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideQueued(), pavv1.SnapshotDeleted)
	}},
	{Name: "the deletion pod runs", When: pod(attempt.Running), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideRunning(), pavv1.SnapshotDeleted)
	}},
	{Name: "the deletion pod is being deleted", When: pod(attempt.Stopping), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideStopping(), pavv1.SnapshotDeleted)
	}},
	{Name: "the result of the deletion pod is not reported", When: pod(attempt.Reporting), Then: reporting(pavv1.SnapshotDeleted)},
	{Name: "the deletion pod succeeded", When: pod(attempt.Succeeded), Then: deleted},
	{Name: "the deletion pod failed", When: rule.Always[observation], Then: to(stepRecordFailure)},
}

// retainedMeanwhile reports whether the deletion policy is not Delete any more, and no deletion pod may have begun to delete the storage.
func (o observation) retainedMeanwhile() bool {
	failure := o.record.Status.DeletionFailure
	return o.retains() && (failure == nil || failure.PodName == "") && !o.mayHaveDeleted()
}

// mayHaveDeleted reports whether the recorded deletion pod may have begun to delete the storage.
func (o observation) mayHaveDeleted() bool {
	pod := o.pod()
	switch {
	case !o.attempt().HasBegun():
		return false
	case pod == nil || workflow.Started(pod) || pod.Annotations[pavv1.GivenAnnotation] != "":
		return true
	default:
		return workflow.Judge(pod).IsOver() && !attempt.WasNeverBound(pod) && !workflow.NeverRan(pod)
	}
}

// policyHolder names the object whose deletion policy decides about the storage.
func (o observation) policyHolder() string {
	if o.content == nil {
		return fmt.Sprintf("PavSnapshot %q", o.record.Name)
	}
	return fmt.Sprintf("VolumeSnapshotContent %q", o.content.Name)
}

// deleted decides about a snapshot whose storage is deleted, or whose creation is reverted.
func deleted(o observation) rule.Decision {
	if o.reverting() {
		return rule.Decision{Step: stepReverted}
	}
	return rule.Decision{Step: stepMarkDeleted}
}

func (o observation) hasDeletionPod() bool {
	d := o.provisioner.Spec.SnapshotDeletion
	return d != nil && d.PodTemplate != nil
}

// deletionBackoff returns how long the next deletion pod has to wait. It does not wait if the definition has changed since the last one.
func deletionBackoff(o observation) time.Duration {
	status := &o.record.Status
	if status.DeletionFailure == nil || status.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	return o.retryIn(status.DeletionAttempt, status.DeletionFailure)
}
