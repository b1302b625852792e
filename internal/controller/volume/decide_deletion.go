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

// decideDeletion decides about a volume whose storage is to be deleted.
func decideDeletion(o snapshot) decision {
	status := &o.volume.Status
	if status.Step == pavv1.StepDeleted {
		return decideDeleted(o)
	}
	if o.nothingToDelete() {
		return decision{step: stepMarkDeleted}
	}
	begun := o.attempt().HasBegun()
	if !begun && o.restored() && !o.deleting() {
		return waitingToDelete("Restored", restoredText(o.volume), true)
	}
	if status.Phase != pavv1.VolumeDeleting {
		return decision{step: stepMarkDeleting}
	}
	if !begun && len(o.others) > 0 {
		return stillHeld(o)
	}
	if status.Pod != nil {
		return decideDeletionPod(o, stepMarkDeleted)
	}
	return decideNextDeletion(o, retainInstead)
}

// decideNextDeletion decides when the next deletion pod is recorded. Instead says what to do if there is no provisioner.
func decideNextDeletion(o snapshot, instead string) decision {
	if o.provisioner == nil {
		return noProvisioner(o, instead)
	}
	if wait := deletionBackoff(o); wait > 0 {
		return again(wait)
	}
	return decision{step: stepDelete}
}

// stillHeld decides about a volume that is to be deleted while other objects use its storage.
func stillHeld(o snapshot) decision {
	if staged := reconcile.StagedOn(o.others); len(staged) == len(o.others) {
		return waitingToDelete("StillStaged", "waiting for the volume to be unstaged on "+nodes(staged), false)
	}
	// PersistentVolumes and PavVolumes sort before PavStages.
	return waitingToDelete("StillInUse", fmt.Sprintf("%s uses the same storage, with the handle %q; the storage is deleted after that object: delete the object or, to keep the storage, set the reclaim policy to Retain",
		describe(o.others[0]), o.volume.Status.Handle), true)
}

// decideDeleted decides about a volume whose storage is deleted.
func decideDeleted(o snapshot) decision {
	if o.ownPV() != nil {
		return decision{step: stepDeletePV}
	}
	return decideForget(o, pavv1.VolumeDeleted)
}

// decideDeletionPod decides about a recorded deletion pod; success is the step after it has succeeded.
func decideDeletionPod(o snapshot, success step) decision {
	a := o.attempt()
	switch p := a.Progress(); p {
	case attempt.None, attempt.Intended:
		if o.provisioner == nil {
			return noProvisioner(o, retainInstead)
		}
		return decided(a.DecideQueued(), pavv1.VolumeDeleted)
	case attempt.Running:
		if o.volume.Status.Step == pavv1.StepDeleting && !workflow.Started(a.Pod()) && o.retainedMeanwhile() {
			return decision{step: stepStopPod}
		}
		return decided(a.DecideRunning(), pavv1.VolumeDeleted)
	case attempt.Stopping, attempt.Reporting:
		return decideEnding(o, p, pavv1.VolumeDeleted)
	case attempt.Succeeded:
		return decision{step: success}
	default:
		return decision{step: stepRecordFailure}
	}
}

// retainInstead says what to do about a volume whose provisioner is gone.
const retainInstead = "set the reclaim policy to Retain and delete the storage by hand"

// noProvisioner decides about a volume whose provisioner is gone. Instead says what to do other than to create it again.
func noProvisioner(o snapshot, instead string) decision {
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
func deletionBackoff(o snapshot) time.Duration {
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
