package volume

import (
	"fmt"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// deletionTable is for a volume whose storage is to be deleted.
var deletionTable = table{
	{Name: "the storage is deleted, and the PersistentVolume is not", When: func(o observation) bool { return o.storageDeleted() && o.ownPV() != nil }, Then: to(stepDeletePV)},
	{Name: "storage and PersistentVolume are deleted", When: observation.storageDeleted, Then: forget(pavv1.VolumeDeleted)},
	{Name: "there is nothing to delete", When: observation.nothingToDelete, Then: to(stepMarkDeleted)},
	{Name: "the record of the volume was restored", When: func(o observation) bool { return !o.attempt().HasBegun() && o.restored() && !o.deleting() }, Then: func(o observation) decision {
		return waitingToDelete("Restored", restoredText(o.volume), true)
	}},
	{Name: "the deletion is not recorded", When: func(o observation) bool { return o.volume.Status.Phase != pavv1.VolumeDeleting && !deletesAtOnce(o) }, Then: to(stepMarkDeleting)},
	{Name: "the bucket of the volume to delete is left", When: observation.bucketLeft, Then: releaseTable.Decide},
	{Name: "another object uses the storage to delete", When: func(o observation) bool { return !o.attempt().HasBegun() && len(o.others) > 0 }, Then: stillHeld},
	{Name: "a deletion pod is recorded", When: func(o observation) bool { return o.volume.Status.Pod != nil }, Then: deletionPodTable.Decide},
	{Name: "the storage is to be deleted", When: always, Then: nextDeletionTable.Decide},
}

// nextDeletionTable is for the next deletion pod.
var nextDeletionTable = table{
	{Name: "there is no provisioner to delete with", When: func(o observation) bool { return o.provisioner == nil }, Then: func(o observation) decision {
		if o.reverting() {
			return noProvisioner(o, "delete by hand what the creation pod made, then remove the finalizer from the PavVolume")
		}
		return noProvisioner(o, retainInstead)
	}},
	{Name: "the next deletion pod is not due", When: func(o observation) bool { return deletionBackoff(o) > 0 }, Then: again(deletionBackoff)},
	{Name: "a deletion pod is due", When: always, Then: to(stepDelete)},
}

// deletionPodTable is for a recorded deletion pod.
var deletionPodTable = table{
	{Name: "the provisioner of a recorded deletion pod is gone", When: func(o observation) bool {
		return o.provisioner == nil && pod(attempt.None, attempt.Intended)(o)
	}, Then: func(o observation) decision { return noProvisioner(o, retainInstead) }},
	{Name: "the deletion pod waits for a slot", When: pod(attempt.None, attempt.Intended), Then: func(o observation) decision {
		return rule.OfPod(o.attempt().DecideQueued(), pavv1.VolumeDeleted)
	}},
	{Name: "the volume is retained before the deletion pod starts", When: func(o observation) bool {
		return o.progress() == attempt.Running && o.volume.Status.Step == pavv1.StepDeleting && !workflow.Started(o.pod()) && o.retainedMeanwhile()
	}, Then: to(stepStopPod)},
	{Name: "the deletion pod runs", When: pod(attempt.Running), Then: func(o observation) decision {
		return rule.OfPod(o.attempt().DecideRunning(), pavv1.VolumeDeleted)
	}},
	{Name: "the deletion pod is being deleted", When: pod(attempt.Stopping), Then: func(o observation) decision {
		return rule.OfPod(o.attempt().DecideStopping(), pavv1.VolumeDeleted)
	}},
	{Name: "the result of the deletion pod is not reported", When: pod(attempt.Reporting), Then: func(o observation) decision {
		return rule.OfPod(attempt.DecideReporting(o.now, o.pod()), pavv1.VolumeDeleted)
	}},
	{Name: "the deletion pod succeeded", When: pod(attempt.Succeeded), Then: func(o observation) decision { return decision{Step: o.afterDeletion()} }},
	{Name: "the deletion pod failed", When: always, Then: to(stepRecordFailure)},
}

// deletesAtOnce reports whether nothing is in the way of the first deletion pod of a Ready volume: then one write records the
// pod, and that the deletion has begun.
func deletesAtOnce(o observation) bool {
	status := &o.volume.Status
	return status.Phase == pavv1.VolumeReady && status.Handle != "" && !o.ofBucket() && status.Pod == nil && status.CreationPod == nil && status.Step == "" &&
		len(o.others) == 0 && o.unrecordedPod() == nil && nextDeletionTable.Decide(o).Step == stepDelete
}

func (o observation) storageDeleted() bool { return o.volume.Status.Step == pavv1.StepDeleted }

// afterDeletion returns the step after a deletion pod has succeeded.
func (o observation) afterDeletion() step {
	switch {
	case !o.reverting():
		return stepMarkDeleted
	case o.ownPV() != nil:
		return stepDeletePV // its storage is deleted
	default:
		return stepReverted
	}
}

// stillHeld decides about a volume that is to be deleted while other objects use its storage.
func stillHeld(o observation) decision {
	if staged := reconcile.StagedOn(o.others); len(staged) == len(o.others) {
		return waitingToDelete("StillStaged", "waiting for the volume to be unstaged on "+reconcile.ListNodes(staged), false)
	}
	// PersistentVolumes and PavVolumes sort before PavStages.
	return waitingToDelete("StillInUse", fmt.Sprintf("%s uses the same storage, with the handle %q; the storage is deleted after that object: delete the object or, to keep the storage, set the reclaim policy to Retain",
		describe(o.others[0]), o.volume.Status.Handle), true)
}

// retainInstead says what to do about a volume whose provisioner is gone.
const retainInstead = "set the reclaim policy to Retain and delete the storage by hand"

// noProvisioner decides about a volume whose provisioner is gone. Instead says what to do other than to create it again.
func noProvisioner(o observation, instead string) decision {
	return waitingToDelete("NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, and only it defines how to delete the volume: create it again; or %s",
		o.volume.Spec.Provisioner, instead), true)
}

// deletionPod returns the template of a provisioner's deletion pod, or nil.
func deletionPod(p *pavv1.PavProvisioner) *pavv1.Template {
	if p.Spec.VolumeDeletion == nil {
		return nil
	}
	return p.Spec.VolumeDeletion.PodTemplate
}

// deletionBackoff returns how long the next deletion pod has to wait. It does not wait if the definition has changed
// since the last one.
func deletionBackoff(o observation) time.Duration {
	status := &o.volume.Status
	if status.DeletionFailure == nil || status.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	return o.retryIn(status.DeletionAttempt, status.DeletionFailure)
}
