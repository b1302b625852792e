package volume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/workflow"
)

// decidePending decides about a volume that is not provisioned yet.
func decidePending(o snapshot) decision {
	switch o.volume.Status.Step {
	case pavv1.StepValidating, pavv1.StepCreating:
		return decideMaking(o)
	default:
		if o.volume.Status.Handle != "" {
			return decideMade(o)
		}
		return decideIdle(o)
	}
}

// decideIdle decides about a volume without storage: before the first attempt, or after one that failed and was reverted.
func decideIdle(o snapshot) decision {
	if o.unwanted() && o.wasBound && !o.deleting() {
		return waiting(pavv1.VolumeProvisioned, "Restored", lostText(o.volume), true)
	}
	// The claim controller reports why, and creates a new PavVolume for a replaced StorageClass.
	if o.unwanted() || o.classReplaced && o.volume.Status.Failure != nil {
		return decideForget(o, pavv1.VolumeProvisioned)
	}
	if o.waitsForNode {
		return decision{step: stepDone}
	}
	return decideAttempt(o)
}

// decideAttempt decides about the next attempt to provision a volume.
func decideAttempt(o snapshot) decision {
	if d, waits := decideConflict(o); waits {
		return d
	}
	if failedOnNode(o) {
		return decision{step: stepReturnNode}
	}
	if wait := provisioningBackoff(o); wait > 0 {
		return again(wait)
	}
	if o.pv != nil {
		return decision{step: stepRefuse, message: fmt.Sprintf("PersistentVolume %q exists and is not this claim's; delete it", o.pv.Name)}
	}
	if message := unusable(o.provisioner); message != "" {
		return decision{step: stepRefuse, message: message}
	}
	return decision{step: stepBegin}
}

// unusable says why a provisioner cannot provision, or "".
func unusable(p *pavv1.PavProvisioner) string {
	if !p.Supports(pavv1.ProvisioningModeDynamic) {
		return fmt.Sprintf("spec.provisioningModes: is %v, without Dynamic", p.Spec.ProvisioningModes)
	}
	if message := p.Refusal(); message != "" {
		return "it cannot be used: " + message
	}
	return ""
}

// failedOnNode reports whether the last creation pod failed, and the scheduler still selects the node that it was for.
func failedOnNode(o snapshot) bool {
	status := &o.volume.Status
	f := status.Failure
	return f != nil && f.Workflow == pavv1.WorkflowCreation && f.PodName != "" &&
		status.SelectedNode != "" && status.SelectedNode == o.selectedNode
}

// provisioningBackoff returns how long the next attempt has to wait. It does not wait if the definition has changed since
// the last one.
func provisioningBackoff(o snapshot) time.Duration {
	status := &o.volume.Status
	if status.Failure == nil {
		return 0
	}
	if o.edited() {
		return 0
	}
	return o.retryIn(status.Attempt, status.Failure)
}

// edited reports whether the definition has changed since the last attempt.
func (o snapshot) edited() bool {
	d := o.volume.Status.Definition
	return d != nil && (d.UID != o.provisioner.UID || d.Generation != o.provisioner.Generation)
}

// retryIn returns how long to wait after the failure of an attempt; 0 if a retry was requested after it.
func (o snapshot) retryIn(attempts int32, failure *pavv1.WorkflowFailure) time.Duration {
	if o.retry.After(failure.Time.Time) {
		return 0
	}
	return workflow.RetryIn(failure, int(attempts), o.now)
}

// decideMaking decides about a volume whose validation or creation pod is recorded.
func decideMaking(o snapshot) decision {
	a := o.attempt()
	switch p := a.Progress(); p {
	case attempt.None, attempt.Intended:
		if o.unwanted() {
			return decision{step: stepDropPod}
		}
		return decided(a.DecideQueued(), pavv1.VolumeProvisioned)
	case attempt.Running:
		if o.unwanted() {
			return decision{step: stepStopPod}
		}
		return decided(a.DecideRunning(), pavv1.VolumeProvisioned)
	case attempt.Reporting:
		if o.unwanted() {
			return decideMadeOrNot(o, p) // the result of a validation pod does not matter any more
		}
		return decideEnding(o, p, pavv1.VolumeProvisioned)
	case attempt.Stopping:
		return decideEnding(o, p, pavv1.VolumeProvisioned)
	default:
		return decideMadeOrNot(o, p)
	}
}

// decideMadeOrNot decides about a validation or creation pod that is over.
func decideMadeOrNot(o snapshot, p attempt.Progress) decision {
	creating := o.volume.Status.Step == pavv1.StepCreating
	nothingRan := p == attempt.Failed && attempt.WasNeverBound(o.pod())
	if o.unwanted() && (!creating || nothingRan) {
		return decision{step: stepDropPod}
	}
	_, known := o.identity()
	switch {
	case creating && known == handleKnown && len(o.others) > 0:
		return decision{step: stepRecordConflict}
	case o.unwanted():
		return decideRevert(o, known)
	case p != attempt.Succeeded:
		return decision{step: stepRecordFailure}
	case creating:
		return decision{step: stepRecordCreated}
	default:
		return decision{step: stepCreate}
	}
}

// decideRevert decides about a creation that is to be reverted, and whose storage no other object uses.
func decideRevert(o snapshot, known knowledge) decision {
	switch known {
	case handleUntold:
		return decided(attempt.DecideReporting(o.now, o.creationPod()), pavv1.VolumeProvisioned)
	case handleUnknown:
		return decision{step: stepAbandon}
	default:
		return decision{step: stepRevert}
	}
}

// decideMade decides about a volume that was created and has no PersistentVolume yet.
func decideMade(o snapshot) decision {
	if o.unwanted() {
		// If no creation pod ran, there is nothing to revert.
		if o.volume.Status.Plan == nil {
			return decideForget(o, pavv1.VolumeProvisioned)
		}
		if len(o.others) > 0 {
			return decision{step: stepRecordConflict}
		}
		return decision{step: stepRevert}
	}
	if o.pv != nil {
		return waiting(pavv1.VolumeProvisioned, "Conflict", fmt.Sprintf("PersistentVolume %q exists and is not this claim's; delete it", o.pv.Name), true)
	}
	if len(o.others) > 0 {
		return decideShared(o)
	}
	if !o.registered {
		return decision{step: stepDone} // the CSIDriver is created first, which brings the next pass
	}
	return decision{step: stepWritePV}
}

// decideReverting decides about a volume whose creation is being reverted.
func decideReverting(o snapshot) decision {
	reverted := decision{step: stepReverted}
	pv := o.ownPV()
	if pv != nil { // another leader wrote it before it saw the revert
		kept := !o.released(pv) || policyOf(pv) != corev1.PersistentVolumeReclaimDelete
		if kept && o.untouched() {
			return decision{step: stepMarkReady} // it belongs to its claim, or to the administrator
		}
		reverted.step = stepDeletePV // its storage is deleted, or is about to be
	}
	if o.attempt().HasBegun() {
		if o.progress() == attempt.Succeeded && o.holdsAnother() {
			return holding(o, pavv1.VolumeProvisioned)
		}
		return decideDeletionPod(o, reverted.step)
	}
	_, known := o.identity()
	switch {
	case known == handleKnown && len(o.others) > 0 && pv != nil:
		return stillHeld(o) // the record of a conflict would lose that a deletion pod has run
	case known == handleKnown && len(o.others) > 0:
		return decision{step: stepRecordConflict}
	case o.provisioner != nil && deletionPod(o.provisioner) == nil && o.volume.Status.Pod == nil:
		return reverted
	case o.volume.Status.Handle == "":
		return decideRevert(o, known)
	}
	if o.volume.Status.Pod == nil {
		return decideNextDeletion(o, "delete by hand what the creation pod made, then remove the finalizer from the PavVolume")
	}
	return decideDeletionPod(o, reverted.step)
}

// untouched reports whether the volume was created, which is when its capacity is known, and no deletion pod has reverted
// anything of it. The failure of a pod that could not be created has no pod name.
func (o snapshot) untouched() bool {
	status := &o.volume.Status
	return status.Capacity != nil && !o.attempt().HasBegun() && status.DeletionAttempt <= 1 &&
		(status.DeletionFailure == nil || status.DeletionFailure.PodName == "")
}

// decideEnding decides about a pod of which nothing matters but its end, or the report of its node.
func decideEnding(o snapshot, p attempt.Progress, condition string) decision {
	if p == attempt.Stopping {
		return decided(o.attempt().DecideStopping(), condition)
	}
	return decided(attempt.DecideReporting(o.now, o.pod()), condition)
}
