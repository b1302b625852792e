package volume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/workflow"
)

// pendingTable is for a volume that is not provisioned yet.
var pendingTable = table{
	{"a validation or creation pod is recorded", func(o observation) bool {
		return o.volume.Status.Step == pavv1.StepValidating || o.volume.Status.Step == pavv1.StepCreating
	}, podTable.decide},
	{"the handle is recorded", func(o observation) bool { return o.volume.Status.Handle != "" }, createdTable.decide},
	{"there is no storage", always, idleTable.decide},
}

// idleTable is for a volume without storage: before the first attempt, or after one that failed and was reverted.
var idleTable = table{
	{"the volume is not needed any more", observation.unwanted, forget(pavv1.VolumeProvisioned)},
	// The claim controller reports that, and creates a new PavVolume.
	{"the StorageClass was replaced", func(o observation) bool { return o.classReplaced && o.volume.Status.Failure != nil }, forget(pavv1.VolumeProvisioned)},
	{"the scheduler has yet to select a node", func(o observation) bool { return o.waitsForNode }, to(stepDone)},
	{"the creation pod named storage that another object uses", observation.conflicts, reportConflict},
	{"the creation pod failed on the selected node", failedOnNode, to(stepReturnNode)},
	{"the next attempt to provision is not due", func(o observation) bool { return provisioningBackoff(o) > 0 }, again(provisioningBackoff)},
	{"another PersistentVolume has the name", func(o observation) bool { return o.pv != nil }, refuse(func(o observation) string {
		return fmt.Sprintf("PersistentVolume %q exists and is not this claim's; delete it", o.pv.Name)
	})},
	{"the provisioner cannot provision", func(o observation) bool { return unusable(o.provisioner) != "" }, refuse(func(o observation) string { return unusable(o.provisioner) })},
	{"an attempt to provision is due", always, to(stepBegin)},
}

// podTable is for a volume whose validation or creation pod is recorded.
var podTable = table{
	{"a pod that is not created is not needed any more", both(pod(attempt.None, attempt.Intended), observation.unwanted), to(stepDropPod)},
	{"the pod waits for a slot", pod(attempt.None, attempt.Intended), func(o observation) decision {
		return decided(o.attempt().DecideQueued(), pavv1.VolumeProvisioned)
	}},
	{"a pod that runs is not needed any more", both(pod(attempt.Running, attempt.Ready), observation.unwanted), to(stepStopPod)},
	// If another object uses the storage that it named, its end is waited for.
	{"the creation pod created /pav/ready", func(o observation) bool { return o.progress() == attempt.Ready && !o.isShared() }, to(stepRecordCreated)},
	{"the pod runs", pod(attempt.Running, attempt.Ready), func(o observation) decision {
		return decided(o.attempt().DecideRunning(), pavv1.VolumeProvisioned)
	}},
	// If the volume is not needed any more, the result of a validation pod does not matter.
	{"the result of the pod is not reported", func(o observation) bool { return o.progress() == attempt.Reporting && !o.unwanted() }, func(o observation) decision {
		return decided(attempt.DecideReporting(o.now, o.pod()), pavv1.VolumeProvisioned)
	}},
	{"the pod is being deleted", pod(attempt.Stopping), func(o observation) decision {
		return decided(o.attempt().DecideStopping(), pavv1.VolumeProvisioned)
	}},
	{"the pod is over", always, overTable.decide},
}

// overTable is for a validation or creation pod that is over.
var overTable = table{
	{"a pod that created nothing is not needed any more", func(o observation) bool { return o.unwanted() && !o.mayHaveCreated() }, to(stepDropPod)},
	{"another object uses the storage that the creation pod named", func(o observation) bool { return o.creating() && o.isShared() }, to(stepRecordConflict)},
	{"the storage of the creation pod is not needed any more", observation.unwanted, revertTable.decide},
	{"the pod failed", func(o observation) bool { return o.progress() != attempt.Succeeded }, to(stepRecordFailure)},
	{"the creation pod succeeded", observation.creating, to(stepRecordCreated)},
	{"the validation pod succeeded", always, to(stepCreate)},
}

// revertTable is for a creation that is to be reverted, and whose storage no other object uses.
var revertTable = table{
	{"the handle is not reported yet", handleIs(handleUntold), func(o observation) decision {
		return decided(attempt.DecideReporting(o.now, o.creationPod()), pavv1.VolumeProvisioned)
	}},
	{"the handle will never be known", handleIs(handleUnknown), to(stepAbandon)},
	{"the handle is known", always, to(stepRevert)},
}

// createdTable is for a volume that was created and has no PersistentVolume yet.
var createdTable = table{
	{"no creation pod ran, and the volume is not needed any more", func(o observation) bool { return o.unwanted() && o.volume.Status.Plan == nil }, forget(pavv1.VolumeProvisioned)},
	{"another object uses created storage that is not needed any more", func(o observation) bool { return o.unwanted() && len(o.others) > 0 }, to(stepRecordConflict)},
	{"created storage is not needed any more", observation.unwanted, to(stepRevert)},
	{"another PersistentVolume has the name of the created volume", func(o observation) bool { return o.pv != nil }, func(o observation) decision {
		return waiting(pavv1.VolumeProvisioned, "Conflict", fmt.Sprintf("PersistentVolume %q exists and is not this claim's; delete it", o.pv.Name), true)
	}},
	{"another object uses the created storage", func(o observation) bool { return len(o.others) > 0 && !o.goesFirst() }, to(stepRecordConflict)},
	{"another volume reports the same handle, and will fail", func(o observation) bool { return len(o.others) > 0 }, waitForOther},
	// The creation of the CSIDriver brings the next pass.
	{"the CSIDriver does not exist yet", func(o observation) bool { return !o.registered }, to(stepDone)},
	{"nodes have yet to register a new driver", func(o observation) bool { return o.registeringFor > 0 }, again(func(o observation) time.Duration { return o.registeringFor })},
	{"the storage is created", always, to(stepWritePV)},
}

// revertingTable is for a volume whose creation is being reverted.
var revertingTable = table{
	// Another leader wrote the PersistentVolume before it saw the revert. It belongs to its claim, or to the administrator.
	{"the PersistentVolume of a creation to revert is kept", func(o observation) bool { return o.ownPV() != nil && o.keepsPV() && !o.deletionBegun() }, keptTable.decide},
	{"the record keeps the handle of other deleted storage", func(o observation) bool {
		return o.attempt().HasBegun() && o.progress() == attempt.Succeeded && o.holdsAnother()
	}, func(o observation) decision { return holding(o, pavv1.VolumeProvisioned) }},
	{"a deletion pod reverts the creation", func(o observation) bool { return o.attempt().HasBegun() }, deletionPodTable.decide},
	// The record of a conflict would lose that a deletion pod has run.
	{"another object uses the storage to revert, and its PersistentVolume exists", func(o observation) bool { return o.isShared() && o.ownPV() != nil }, stillHeld},
	{"another object uses the storage to revert", observation.isShared, to(stepRecordConflict)},
	{"the provisioner has no deletion pod", func(o observation) bool {
		return o.provisioner != nil && deletionPod(o.provisioner) == nil && o.volume.Status.Pod == nil
	}, func(o observation) decision { return decision{step: o.afterDeletion()} }},
	{"the handle of the storage to revert is not recorded", func(o observation) bool { return o.volume.Status.Handle == "" }, revertTable.decide},
	{"the storage is to be reverted", func(o observation) bool { return o.volume.Status.Pod == nil }, nextDeletionTable.decide},
	{"a deletion pod is recorded to revert the creation", always, deletionPodTable.decide},
}

// keptTable is for a volume whose creation is to be reverted although its PersistentVolume is kept. Nothing is reverted yet.
var keptTable = table{
	{"the PersistentVolume of a creation to revert is retained", func(o observation) bool { return o.released(o.pv) }, to(stepMarkReady)},
	{"the PersistentVolume of a restored creation to revert is not bound", observation.unproven, to(stepDone)},
	{"the PersistentVolume of created storage is in use", func(o observation) bool { return o.volume.Status.Capacity != nil || o.predates() }, to(stepMarkReady)},
	{"the PersistentVolume of storage whose creation failed is in use", always, func(o observation) decision {
		return waitingToDelete("InUse", fmt.Sprintf("PersistentVolume %q exists for a claim, although the last attempt to create its storage failed; nothing is reverted as long as a claim can use it: delete the claim", o.pv.Name), true)
	}},
}

// both is true of an observation if both conditions are.
func both(one, other func(observation) bool) func(observation) bool {
	return func(o observation) bool { return one(o) && other(o) }
}

// handleIs is true of an observation if this is known of the handle.
func handleIs(known knowledge) func(observation) bool {
	return func(o observation) bool {
		_, is := o.identity()
		return is == known
	}
}

func (o observation) creating() bool { return o.volume.Status.Step == pavv1.StepCreating }

// mayHaveCreated reports whether the recorded pod, which is over, may have created storage.
func (o observation) mayHaveCreated() bool {
	return o.creating() && (o.progress() != attempt.Failed || !attempt.WasNeverBound(o.pod()) && !attempt.IsInfeasible(o.pod()))
}

// isShared reports whether the handle is known, and other objects use its storage.
func (o observation) isShared() bool { return len(o.others) > 0 && handleIs(handleKnown)(o) }

// keepsPV reports whether the PersistentVolume is kept: a claim has it or can get it, or the administrator reclaims it.
func (o observation) keepsPV() bool {
	pv := o.ownPV()
	return !o.released(pv) || policyOf(pv) != corev1.PersistentVolumeReclaimDelete
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
func failedOnNode(o observation) bool {
	status := &o.volume.Status
	f := status.Failure
	return f != nil && f.Workflow == pavv1.WorkflowCreation && f.PodName != "" &&
		status.SelectedNode != "" && status.SelectedNode == o.selectedNode
}

// provisioningBackoff returns how long the next attempt has to wait. It does not wait if the definition has changed since
// the last one.
func provisioningBackoff(o observation) time.Duration {
	status := &o.volume.Status
	if status.Failure == nil {
		return 0
	}
	if o.edited() {
		return 0
	}
	if status.Failure.Reason == pavv1.FailureInfeasible && o.requestChanged() {
		return o.retryIn(status.Attempt, asOfAnotherRequest(status.Failure))
	}
	return o.retryIn(status.Attempt, status.Failure)
}

// requestChanged reports whether the claim has changed since the last attempt began, or the scheduler has selected another node.
func (o observation) requestChanged() bool {
	return o.volume.Generation != o.volume.Status.AttemptGeneration || o.selectedNode != o.volume.Status.SelectedNode
}

// edited reports whether the definition has changed since the last attempt.
func (o observation) edited() bool {
	d := o.volume.Status.Definition
	return d != nil && (d.UID != o.provisioner.UID || d.Generation != o.provisioner.Generation)
}

// asOfAnotherRequest returns a failure that was infeasible as one that says nothing about the present request: its delay is the
// usual one.
func asOfAnotherRequest(infeasible *pavv1.WorkflowFailure) *pavv1.WorkflowFailure {
	failure := *infeasible
	failure.Reason = pavv1.FailurePodFailed
	return &failure
}

// retryIn returns how long to wait after the failure of an attempt; 0 if a retry was requested after it.
func (o observation) retryIn(attempts int32, failure *pavv1.WorkflowFailure) time.Duration {
	if o.retry.After(failure.Time.Time) {
		return 0
	}
	return workflow.RetryIn(failure, int(attempts), o.now)
}

// deletionBegun reports whether a deletion pod may have reverted something. The record of an earlier version has only the last
// failure; that of a pod that could not be created has no pod name.
func (o observation) deletionBegun() bool {
	if o.predates() {
		return false // a deletion pod of the time before the backup says nothing about the storage now
	}
	status := &o.volume.Status
	return status.DeletionBegun || o.attempt().HasBegun() || status.DeletionFailure != nil && status.DeletionFailure.PodName != ""
}
