package volume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/workflow"
)

// pendingTable is for a volume that is not provisioned yet.
var pendingTable = table{
	{Name: "a validation or creation pod is recorded", When: func(o observation) bool {
		return o.volume.Status.Step == pavv1.StepValidating || o.volume.Status.Step == pavv1.StepCreating
	}, Then: podTable.Decide},
	{Name: "the volume of a bucket is not needed any more", When: func(o observation) bool { return o.unwanted() && o.bucketLeft() }, Then: releaseTable.Decide},
	{Name: "the volume waits for its bucket", When: func(o observation) bool { return o.volume.Status.Step == pavv1.StepGranting }, Then: grantingTable.Decide},
	{Name: "the handle is recorded", When: func(o observation) bool { return o.volume.Status.Handle != "" }, Then: createdTable.Decide},
	{Name: "there is no storage", When: always, Then: idleTable.Decide},
}

// idleTable is for a volume without storage: before the first attempt, or after one that failed and was reverted.
var idleTable = table{
	{Name: "the volume is not needed any more", When: observation.unwanted, Then: forget(pavv1.VolumeProvisioned)},
	{Name: "the provisioner of a volume with a source is gone", When: observation.lacksProvisioner, Then: func(o observation) decision {
		return rule.Waiting(pavv1.VolumeProvisioned, "NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, or is being deleted: create it again, or delete the claim", o.volume.Spec.Provisioner), true)
	}},
	// The claim controller reports that, and creates a new PavVolume.
	// The record of a volume with a source is what keeps the source from being deleted.
	{Name: "the StorageClass was replaced", When: func(o observation) bool {
		return o.classReplaced && o.volume.Status.Failure != nil && o.volume.Spec.Source == nil
	}, Then: forget(pavv1.VolumeProvisioned)},
	{Name: "the scheduler has yet to select a node", When: func(o observation) bool { return o.waitsForNode }, Then: to(stepDone)},
	{Name: "the creation pod named storage that another object uses", When: observation.conflicts, Then: reportConflict},
	{Name: "the creation pod failed on the selected node", When: failedOnNode, Then: to(stepReturnNode)},
	{Name: "the next attempt to provision is not due", When: func(o observation) bool { return provisioningBackoff(o) > 0 }, Then: again(provisioningBackoff)},
	{Name: "another PersistentVolume has the name", When: func(o observation) bool { return o.pv != nil }, Then: refuse(func(o observation) string {
		return fmt.Sprintf("PersistentVolume %q exists and is not this claim's; delete it", o.pv.Name)
	})},
	{Name: "the provisioner cannot provision", When: func(o observation) bool { return unusable(o.provisioner) != "" }, Then: refuse(func(o observation) string { return unusable(o.provisioner) })},
	{Name: "the source cannot be read now", When: func(o observation) bool { return o.obstacle() != nil }, Then: func(o observation) decision { return *o.obstacle() }},
	{Name: "an attempt to provision is due", When: always, Then: to(stepBegin)},
}

// podTable is for a volume whose validation or creation pod is recorded.
var podTable = table{
	{Name: "a pod that is not created is not needed any more", When: both(pod(attempt.None, attempt.Intended), observation.unwanted), Then: to(stepDropPod)},
	{Name: "a creation pod that is not created waits for its source", When: func(o observation) bool { return o.awaitsSource() }, Then: sourceTable.Decide},
	{Name: "the pod waits for a slot", When: pod(attempt.None, attempt.Intended), Then: func(o observation) decision {
		return rule.OfPod(o.attempt().DecideQueued(), pavv1.VolumeProvisioned)
	}},
	{Name: "the source was given to another claim while it is read", When: func(o observation) bool {
		return o.creating() && o.isGivenAway() && pod(attempt.Running, attempt.Ready)(o)
	}, Then: to(stepStopPod)},
	{Name: "a pod that runs is not needed any more", When: both(pod(attempt.Running, attempt.Ready), observation.unwanted), Then: to(stepStopPod)},
	// If another object uses the storage that it named, its end is waited for.
	{Name: "the creation pod created /pav/ready", When: func(o observation) bool { return o.progress() == attempt.Ready && !o.isShared() }, Then: to(stepRecordCreated)},
	{Name: "the pod runs", When: pod(attempt.Running, attempt.Ready), Then: func(o observation) decision {
		return rule.OfPod(o.attempt().DecideRunning(), pavv1.VolumeProvisioned)
	}},
	// If the volume is not needed any more, the result of a validation pod does not matter.
	{Name: "the result of the pod is not reported", When: func(o observation) bool { return o.progress() == attempt.Reporting && !o.unwanted() }, Then: func(o observation) decision {
		return rule.OfPod(attempt.DecideReporting(o.now, o.pod()), pavv1.VolumeProvisioned)
	}},
	{Name: "the pod is being deleted", When: pod(attempt.Stopping), Then: func(o observation) decision {
		return rule.OfPod(o.attempt().DecideStopping(), pavv1.VolumeProvisioned)
	}},
	{Name: "the pod is over", When: always, Then: overTable.Decide},
}

// sourceTable is for a creation pod that is recorded and not created, and may not read its source yet.
var sourceTable = table{
	{Name: "the source of a recorded creation pod cannot be read any more", When: observation.lostSource, Then: to(stepDropPod)},
	{Name: "a node has not been asked to write what it has in memory of the source", When: func(o observation) bool { return len(o.reading().Unasked()) > 0 }, Then: to(stepSyncSource)},
	{Name: "a node does not write what it has in memory of the source", When: func(o observation) bool { return o.reading().IsSyncLate() }, Then: to(stepGiveUpSync)},
	{Name: "a node has yet to write what it has in memory of the source", When: always, Then: func(o observation) decision {
		return o.reading().AwaitSync(pavv1.VolumeProvisioned)
	}},
}

// awaitsSource reports whether the recorded creation pod is not known to be created, and may not read its source yet.
func (o observation) awaitsSource() bool {
	return o.source != nil && o.creating() && pod(attempt.None, attempt.Intended)(o) && (o.lostSource() || len(o.reading().Unsynced()) > 0)
}

// lostSource reports whether a recorded creation pod cannot read its source as it was recorded: the source is gone, or must not be staged.
func (o observation) lostSource() bool {
	return o.sourceGone() != nil || o.sourceChanged() || o.reading().MustWait() || o.cannotKeepSourceUnstaged()
}

// overTable is for a validation or creation pod that is over.
var overTable = table{
	{Name: "a pod that created nothing is not needed any more", When: func(o observation) bool { return o.unwanted() && !o.mayHaveCreated() }, Then: to(stepDropPod)},
	{Name: "another object uses the storage that the creation pod named", When: func(o observation) bool { return o.creating() && o.isShared() }, Then: to(stepRecordConflict)},
	{Name: "the storage of the creation pod is not needed any more", When: observation.unwanted, Then: revertTable.Decide},
	{Name: "the pod failed", When: func(o observation) bool { return o.progress() != attempt.Succeeded }, Then: to(stepRecordFailure)},
	{Name: "the creation pod succeeded", When: observation.creating, Then: to(stepRecordCreated)},
	{Name: "the source has changed since the attempt began", When: observation.sourceChanged, Then: to(stepDropPod)},
	{Name: "the source of the validated volume cannot be read now", When: func(o observation) bool { return o.obstacle() != nil }, Then: func(o observation) decision { return *o.obstacle() }},
	{Name: "the validation pod succeeded", When: always, Then: to(stepCreate)},
}

// revertTable is for a creation that is to be reverted, and whose storage no other object uses.
var revertTable = table{
	{Name: "the handle is not reported yet", When: handleIs(handleUntold), Then: func(o observation) decision {
		return rule.OfPod(attempt.DecideReporting(o.now, o.creationPod()), pavv1.VolumeProvisioned)
	}},
	{Name: "the handle will never be known", When: handleIs(handleUnknown), Then: to(stepAbandon)},
	{Name: "the handle is known", When: always, Then: to(stepRevert)},
}

// createdTable is for a volume that was created and has no PersistentVolume yet.
var createdTable = table{
	{Name: "no creation pod ran, and the volume is not needed any more", When: func(o observation) bool { return o.unwanted() && o.volume.Status.Plan == nil }, Then: forget(pavv1.VolumeProvisioned)},
	{Name: "another object uses created storage that is not needed any more", When: func(o observation) bool { return o.unwanted() && len(o.others) > 0 }, Then: to(stepRecordConflict)},
	{Name: "created storage is not needed any more", When: observation.unwanted, Then: to(stepRevert)},
	{Name: "another PersistentVolume has the name of the created volume", When: func(o observation) bool { return o.pv != nil }, Then: func(o observation) decision {
		return rule.Waiting(pavv1.VolumeProvisioned, "Conflict", fmt.Sprintf("PersistentVolume %q exists and is not this claim's; delete it", o.pv.Name), true)
	}},
	{Name: "another object has the bucket of the volume", When: func(o observation) bool { return o.ofBucket() && len(o.others) > 0 }, Then: stillShared},
	{Name: "another object uses the created storage", When: func(o observation) bool { return len(o.others) > 0 && !o.goesFirst() }, Then: to(stepRecordConflict)},
	{Name: "another volume reports the same handle, and will fail", When: func(o observation) bool { return len(o.others) > 0 }, Then: waitForOther},
	// The creation of the CSIDriver brings the next pass.
	{Name: "the CSIDriver does not exist yet", When: func(o observation) bool { return !o.registered }, Then: to(stepDone)},
	{Name: "nodes have yet to register a new driver", When: func(o observation) bool { return o.registeringFor > 0 }, Then: again(func(o observation) time.Duration { return o.registeringFor })},
	{Name: "the storage is created", When: always, Then: to(stepWritePV)},
}

// revertingTable is for a volume whose creation is being reverted.
var revertingTable = table{
	// Another leader wrote the PersistentVolume before it saw the revert. It belongs to its claim, or to the administrator.
	{Name: "the PersistentVolume of a creation to revert is kept", When: func(o observation) bool { return o.ownPV() != nil && o.keepsPV() && !o.deletionBegun() }, Then: keptTable.Decide},
	{Name: "the record keeps the handle of other deleted storage", When: func(o observation) bool {
		return o.attempt().HasBegun() && o.progress() == attempt.Succeeded && o.holdsAnother()
	}, Then: func(o observation) decision { return holding(o, pavv1.VolumeProvisioned) }},
	{Name: "a deletion pod reverts the creation", When: func(o observation) bool { return o.attempt().HasBegun() }, Then: deletionPodTable.Decide},
	// The record of a conflict would lose that a deletion pod has run.
	{Name: "another object uses the storage to revert, and its PersistentVolume exists", When: func(o observation) bool { return o.isShared() && o.ownPV() != nil }, Then: stillHeld},
	{Name: "another object uses the storage to revert", When: observation.isShared, Then: to(stepRecordConflict)},
	{Name: "the provisioner has no deletion pod", When: func(o observation) bool {
		return o.provisioner != nil && deletionPod(o.provisioner) == nil && o.volume.Status.Pod == nil
	}, Then: func(o observation) decision { return decision{Step: o.afterDeletion()} }},
	{Name: "the handle of the storage to revert is not recorded", When: func(o observation) bool { return o.volume.Status.Handle == "" }, Then: revertTable.Decide},
	{Name: "the storage is to be reverted", When: func(o observation) bool { return o.volume.Status.Pod == nil }, Then: nextDeletionTable.Decide},
	{Name: "a deletion pod is recorded to revert the creation", When: always, Then: deletionPodTable.Decide},
}

// keptTable is for a volume whose creation is to be reverted although its PersistentVolume is kept. Nothing is reverted yet.
var keptTable = table{
	{Name: "the PersistentVolume of a creation to revert is retained", When: func(o observation) bool { return o.released(o.pv) }, Then: to(stepMarkReady)},
	{Name: "the PersistentVolume of a restored creation to revert is not bound", When: observation.unproven, Then: to(stepDone)},
	{Name: "the PersistentVolume of created storage is in use", When: func(o observation) bool { return o.volume.Status.Capacity != nil || o.predates() }, Then: to(stepMarkReady)},
	{Name: "the PersistentVolume of storage whose creation failed is in use", When: always, Then: func(o observation) decision {
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
	anotherNode := o.selectedNode != o.volume.Status.SelectedNode && !o.limited()
	return o.volume.Generation != o.volume.Status.AttemptGeneration || anotherNode
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
