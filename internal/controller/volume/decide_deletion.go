package volume

import (
	"fmt"
	"strings"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// deletionTable is for a volume whose storage is to be deleted.
var deletionTable = table{
	{"the storage is deleted, and the PersistentVolume is not", func(o observation) bool { return o.storageDeleted() && o.ownPV() != nil }, to(stepDeletePV)},
	{"storage and PersistentVolume are deleted", observation.storageDeleted, forget(pavv1.VolumeDeleted)},
	{"there is nothing to delete", observation.nothingToDelete, to(stepMarkDeleted)},
	{"the record of the volume was restored", func(o observation) bool { return !o.attempt().HasBegun() && o.restored() && !o.deleting() }, func(o observation) decision {
		return waitingToDelete("Restored", restoredText(o.volume), true)
	}},
	{"the deletion is not recorded", func(o observation) bool { return o.volume.Status.Phase != pavv1.VolumeDeleting && !deletesAtOnce(o) }, to(stepMarkDeleting)},
	{"another object uses the storage to delete", func(o observation) bool { return !o.attempt().HasBegun() && len(o.others) > 0 }, stillHeld},
	{"a deletion pod is recorded", func(o observation) bool { return o.volume.Status.Pod != nil }, deletionPodTable.decide},
	{"the storage is to be deleted", always, nextDeletionTable.decide},
}

// nextDeletionTable is for the next deletion pod.
var nextDeletionTable = table{
	{"there is no provisioner to delete with", func(o observation) bool { return o.provisioner == nil }, func(o observation) decision {
		if o.reverting() {
			return noProvisioner(o, "delete by hand what the creation pod made, then remove the finalizer from the PavVolume")
		}
		return noProvisioner(o, retainInstead)
	}},
	{"the next deletion pod is not due", func(o observation) bool { return deletionBackoff(o) > 0 }, again(deletionBackoff)},
	{"a deletion pod is due", always, to(stepDelete)},
}

// deletionPodTable is for a recorded deletion pod.
var deletionPodTable = table{
	{"the provisioner of a recorded deletion pod is gone", func(o observation) bool {
		return o.provisioner == nil && pod(attempt.None, attempt.Intended)(o)
	}, func(o observation) decision { return noProvisioner(o, retainInstead) }},
	{"the deletion pod waits for a slot", pod(attempt.None, attempt.Intended), func(o observation) decision {
		return decided(o.attempt().DecideQueued(), pavv1.VolumeDeleted)
	}},
	{"the volume is retained before the deletion pod starts", func(o observation) bool {
		return o.progress() == attempt.Running && o.volume.Status.Step == pavv1.StepDeleting && !workflow.Started(o.pod()) && o.retainedMeanwhile()
	}, to(stepStopPod)},
	{"the deletion pod runs", pod(attempt.Running), func(o observation) decision {
		return decided(o.attempt().DecideRunning(), pavv1.VolumeDeleted)
	}},
	{"the deletion pod is being deleted", pod(attempt.Stopping), func(o observation) decision {
		return decided(o.attempt().DecideStopping(), pavv1.VolumeDeleted)
	}},
	{"the result of the deletion pod is not reported", pod(attempt.Reporting), func(o observation) decision {
		return decided(attempt.DecideReporting(o.now, o.pod()), pavv1.VolumeDeleted)
	}},
	{"the deletion pod succeeded", pod(attempt.Succeeded), func(o observation) decision { return decision{step: o.afterDeletion()} }},
	{"the deletion pod failed", always, to(stepRecordFailure)},
}

// deletesAtOnce reports whether nothing is in the way of the first deletion pod of a Ready volume: then one write records the
// pod, and that the deletion has begun.
func deletesAtOnce(o observation) bool {
	status := &o.volume.Status
	return status.Phase == pavv1.VolumeReady && status.Handle != "" && status.Pod == nil && status.CreationPod == nil && status.Step == "" &&
		len(o.others) == 0 && o.unrecordedPod() == nil && nextDeletionTable.decide(o).step == stepDelete
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
		return waitingToDelete("StillStaged", "waiting for the volume to be unstaged on "+nodes(staged), false)
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

// nodes lists at most three nodes.
func nodes(names []string) string {
	const most = 3
	text := "node "
	if len(names) > 1 {
		text = "nodes "
	}
	if len(names) <= most {
		return text + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s%s and %d more", text, strings.Join(names[:most], ", "), len(names)-most)
}
