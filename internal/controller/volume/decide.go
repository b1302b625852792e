package volume

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
)

// The steps of volumes.
const (
	// stepDone: nothing is to be done until something changes.
	stepDone = rule.Done

	// stepWait: the same, and a condition says what the volume waits for.
	stepWait = rule.Wait

	// stepAlign: make reclaim policy and finalizers of PavVolume and PersistentVolume agree.
	stepAlign step = "Align"

	// stepBegin: begin an attempt to provision: check the request, and record the first pod or, if there is none, the
	// handle and capacity.
	stepBegin step = "Begin"

	// stepCreate: the request is valid; record the creation pod or the handle and capacity.
	stepCreate step = "Create"

	// stepRefuse: the attempt fails before any pod runs; the message says why.
	stepRefuse step = "Refuse"

	// stepRunPod: create the recorded pod as soon as it has a slot.
	stepRunPod = rule.RunPod

	// stepRecordPod: the pod exists; record its UID, as it may be gone by the next pass.
	stepRecordPod step = "RecordPod"

	// stepStopPod: delete the recorded pod.
	stepStopPod = rule.StopPod

	// stepDropPod: remove a pod from the record that was never created or left nothing, and that is not needed any more.
	stepDropPod step = "DropPod"

	// stepSyncSource: ask the nodes that have the source volume staged to write to the storage what they have in memory.
	stepSyncSource step = "SyncSource"

	// stepGiveUpSync: a node does not answer; the attempt fails.
	stepGiveUpSync step = "GiveUpSync"

	// stepLeaveSource: the source volume is not read any more; let others change it.
	stepLeaveSource step = "LeaveSource"

	// stepRecordCreated: the creation pod has succeeded, or created /pav/ready; record the handle and capacity.
	stepRecordCreated step = "RecordCreated"

	// stepEndCreation: record that the creation pod, which had created /pav/ready, has ended.
	stepEndCreation step = "EndCreation"

	// stepStopCreation: delete the creation pod that goes on after /pav/ready.
	stepStopCreation step = "StopCreation"

	// stepRecordFailure: record that the pod has failed.
	stepRecordFailure step = "RecordFailure"

	// stepRecordLateMessage: the node reported what the pod left in /pav after the failure was recorded; add it.
	stepRecordLateMessage step = "RecordWords"

	// stepRevert: begin to revert a creation; record the handle of the storage.
	stepRevert step = "Revert"

	// stepRecordConflict: the creation pod named storage that another object uses; record that, and stop.
	stepRecordConflict step = "RecordConflict"

	// stepAbandon: the handle of the storage that the creation pod made cannot be known; leave the storage.
	stepAbandon step = "Abandon"

	// stepReverted: record that the creation is reverted.
	stepReverted step = "Reverted"

	// stepReturnNode: the volume cannot be created for the node that the scheduler selected; let it choose again.
	stepReturnNode step = "ReturnNode"

	// stepWritePV: write the PersistentVolume.
	stepWritePV step = "WritePV"

	// stepMarkReady: record that the PersistentVolume exists.
	stepMarkReady step = "MarkReady"

	// stepHold: record that the volume is to grow while no node has it staged, so that no node stages it.
	stepHold step = "Hold"

	// stepExpand: begin an attempt to expand the volume: record the capacity that it is to have, and the expansion pod.
	stepExpand step = "Expand"

	// stepModify: begin an attempt to modify the volume: record the attributes that it is to have, and the modification pod.
	stepModify step = "Modify"

	// stepRecordChanged: the expansion or modification pod has succeeded; record the capacity or the attributes.
	stepRecordChanged step = "RecordChanged"

	// stepEndExpansion: the claim does not request more any more; remove the record of the expansion.
	stepEndExpansion step = "EndExpansion"

	// stepUpdatePV: write the capacity of the volume and the VolumeAttributesClass that it has to the PersistentVolume.
	stepUpdatePV step = "UpdatePV"

	// stepEndModification: the claim does not name other attributes any more; remove the record of the modification.
	stepEndModification step = "EndModification"

	// stepShowClaim: write to the status of the claim how large the volume is, what attributes it has, and that this changes.
	stepShowClaim step = "ShowClaim"

	// stepMarkDeleting: record that the storage will be deleted, before any deletion pod runs.
	stepMarkDeleting step = "MarkDeleting"

	// stepDelete: record the deletion pod.
	stepDelete step = "Delete"

	// stepMarkDeleted: record that the deletion pod has succeeded.
	stepMarkDeleted step = "MarkDeleted"

	// stepDeletePV: the storage is gone; delete the PersistentVolume.
	stepDeletePV step = "DeletePV"

	// stepRetain: record that the storage now belongs to the administrator.
	stepRetain step = "Retain"

	// stepRelease: release the handle of deleted storage, so that another volume can have it.
	stepRelease step = "Release"

	// stepDropReaders: remove readers from the record that do not exist any more.
	stepDropReaders step = "DropReaders"

	// stepRecordStatic: record what a volume is that an administrator wrote.
	stepRecordStatic step = "RecordStatic"

	// stepDropRecord: delete the record of such a volume, which the claim does not have any more.
	stepDropRecord step = "DropRecord"

	// stepForget: no storage is left, or none was ever created; delete the PavVolume.
	stepForget step = "Forget"
)

// keepsTurn reports whether a volume that waits for a slot keeps its turn.
func keepsTurn(s step) bool { return s == stepRunPod || s == stepRecordLateMessage }

// begins reports whether a step begins an attempt.
func begins(s step) bool {
	return s == stepBegin || s == stepRefuse || s == stepDelete || s == stepExpand || s == stepModify
}

// afterAllPods reports whether a step is taken only after all other pods of the volume have ended: it creates a pod, records
// one that is to be created, or deletes the record.
func afterAllPods(s step) bool {
	return s == stepBegin || s == stepCreate || s == stepRunPod || s == stepDelete || s == stepExpand || s == stepModify || s == stepForget || s == stepDropRecord
}

// needsWhole reports whether a step needs the PavVolume as the API server has it: templates see its copies of the
// claim, the step cannot be undone, or a former leader would take it again and again.
func needsWhole(s step) bool {
	return s == stepReturnNode || s == stepBegin || s == stepRefuse || s == stepCreate || s == stepRunPod || s == stepDelete || s == stepWritePV || s == stepRevert ||
		s == stepRecordBucket || s == stepRecordAccess
}

// decide is pure: it does no I/O and reads no clock.
func decide(o observation) decision {
	if len(o.formerReaders) > 0 {
		return decision{Step: stepDropReaders, Rule: "a reader does not exist any more"}
	}
	table := volumeTable
	if o.volume.Spec.Static {
		table = staticTable
	}
	d := table.Decide(o)
	if d.Step == stepForget && o.bucketLeft() {
		d = releaseTable.Decide(o) // the record is what gives up the bucket
	}
	d = decideRead(o, d)
	if (d.Step == stepDone || d.Step == stepWait) && len(o.oldWaits(d)) > 0 {
		return decision{Step: stepDropReaders, Rule: "what waited for readers is not wanted any more", Condition: d.Condition, Reason: d.Reason}
	}
	if pod := o.unrecordedPod(); pod != nil && afterAllPods(d.Step) {
		d = waitForUnrecorded(o, pod)
		d.Rule = "a pod that is not recorded has not ended"
	}
	if o.reading().Holds() && !o.readsSource(d.Step) {
		return decision{Step: stepLeaveSource, Rule: "the source is not read any more"}
	}
	if o.volume.Status.CreationPod != nil && d.Step == stepDone {
		d = decideLinger(o, d)
	}
	return d
}

// waitForUnrecorded decides about a volume with a pod that has not ended and is not the recorded one.
func waitForUnrecorded(o observation, pod *corev1.Pod) decision {
	condition := conditionFor(pod.Labels[pavv1.WorkflowLabel])
	if o.pending() && !o.reverting() {
		condition = pavv1.VolumeProvisioned
	}
	if pod.DeletionTimestamp == nil {
		return rule.Waiting(condition, attempt.ReasonPodStopping, fmt.Sprintf("waiting for pod %s/%s, which is not needed any more and is being stopped", pod.Namespace, pod.Name), false)
	}
	ref := &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	return rule.OfPod(attempt.Attempt{Now: o.now, Ref: ref, Pods: o.pods}.DecideStopping(), condition)
}

// volumeTable is for every volume.
var volumeTable = table{
	{Name: "the UID of the pod is not recorded", When: func(o observation) bool { return o.attempt().IsUnrecorded() }, Then: to(stepRecordPod)},
	{Name: "what a failed pod left is not recorded", When: observation.isReportedLate, Then: to(stepRecordLateMessage)},
	{Name: "the creation pod that created /pav/ready has ended", When: observation.creationEnded, Then: to(stepEndCreation)},
	// Nothing else is done to the storage before the pod has ended.
	{Name: "an expansion or modification pod is recorded", When: observation.changing, Then: changePodTable.Decide},
	{Name: "no creation pod can have found the deleted storage", When: observation.releasable, Then: to(stepRelease)},
	{Name: "the record of a volume that is not provisioned was restored", When: func(o observation) bool { return o.restoredPending() && !o.deleting() }, Then: func(o observation) decision {
		return rule.Waiting(pavv1.VolumeProvisioned, "Restored", o.pendingText(), true)
	}},
	{Name: "the creation is being reverted", When: observation.reverting, Then: revertingTable.Decide},
	// A deletion that has begun is completed, even if the reclaim policy has changed since.
	{Name: "a deletion pod may have begun", When: observation.irrevocable, Then: deletionTable.Decide},
	{Name: "the PersistentVolume exists", When: func(o observation) bool { return o.ownPV() != nil }, Then: withPVTable.Decide},
	{Name: "the volume is not provisioned", When: observation.pending, Then: pendingTable.Decide},
	{Name: "the PersistentVolume is gone", When: always, Then: withoutPVTable.Decide},
}

// withPVTable is for a volume whose PersistentVolume exists.
var withPVTable = table{
	// It is recorded that the PersistentVolume existed before anything lets it go: the storage of a pending volume is reverted.
	{Name: "it is not recorded that the PersistentVolume exists", When: func(o observation) bool { return o.pending() && !o.unproven() }, Then: to(stepMarkReady)},
	{Name: "PavVolume and PersistentVolume disagree", When: observation.unaligned, Then: to(stepAlign)},
	{Name: "the PersistentVolume of a restored record is not bound", When: inUse(observation.unproven), Then: to(stepDone)},
	{Name: "a claim has the volume, or can get it", When: inUse(observation.becomesReady), Then: to(stepMarkReady)},
	{Name: "the PavVolume of a volume in use is deleted", When: inUse(func(o observation) bool { return o.deleting() && o.volume.Status.Phase == pavv1.VolumeReady }), Then: func(o observation) decision {
		return waitingToDelete("InUse", fmt.Sprintf("PersistentVolume %q is still in use: delete its claim", o.pv.Name), true)
	}},
	{Name: "a volume in use is not known to have access to its bucket", When: inUse(func(o observation) bool { return o.ofBucket() && !o.retained() && !o.isBucketShown() }), Then: bucketUseTable.Decide},
	{Name: "the volume is in use", When: inUse(always), Then: decideUse},
	{Name: "the volume is released, with reclaim policy Delete", When: func(o observation) bool { return policyOf(o.ownPV()) == corev1.PersistentVolumeReclaimDelete }, Then: deletionTable.Decide},
	{Name: "the volume is deleted after its PavVolume", When: func(o observation) bool { return o.reclaimed(o.ownPV()) }, Then: to(stepDone)},
	{Name: "the volume of a bucket is released, with reclaim policy Retain", When: observation.bucketLeft, Then: releaseTable.Decide},
	{Name: "the volume is released, with reclaim policy Retain", When: func(o observation) bool { return !o.retained() }, Then: to(stepRetain)},
	{Name: "the volume is retained", When: always, Then: to(stepDone)},
}

// withoutPVTable is for a volume whose PersistentVolume is gone.
var withoutPVTable = table{
	{Name: "the PavVolume has a wrong finalizer", When: observation.unaligned, Then: to(stepAlign)},
	{Name: "a claim waits for the PersistentVolume of a retained volume", When: func(o observation) bool { return !o.deletes() && o.retained() && o.claim == claimWaits }, Then: func(o observation) decision {
		return rule.InDoubt(rule.Tell(fmt.Sprintf("PersistentVolume %q was removed by force before the claim was bound to it, and its storage is retained, with the handle %q: create the PersistentVolume again, or delete the claim and create another one",
			o.volume.Name, o.volume.Status.Handle)))
	}},
	{Name: "the bucket of a deleted PersistentVolume is to be retained", When: func(o observation) bool { return !o.deletes() && o.bucketLeft() }, Then: releaseTable.Decide},
	{Name: "the storage of a deleted PersistentVolume is retained", When: func(o observation) bool { return !o.deletes() && o.retained() }, Then: to(stepDone)},
	{Name: "the storage of a deleted PersistentVolume is to be retained", When: func(o observation) bool { return !o.deletes() }, Then: to(stepRetain)},
	// A retained volume is deleted only by an administrator who changes its policy and deletes it.
	{Name: "a retained volume is deleted after its PavVolume", When: func(o observation) bool { return o.retained() && !o.deleting() }, Then: to(stepDone)},
	{Name: "the PersistentVolume of a bound claim was removed by force", When: func(o observation) bool { return o.claim == claimBound }, Then: func(o observation) decision {
		return rule.InDoubt(waitingToDelete(reasonLost, fmt.Sprintf("PersistentVolume %q was removed by force while its claim is bound to it; the storage is deleted when the claim is", o.volume.Name), true))
	}},
	{Name: "the PersistentVolume was deleted", When: always, Then: deletionTable.Decide},
}

// inUse is true of an observation with a volume that a claim has, or can still get, and for which the condition is true.
func inUse(condition func(observation) bool) func(observation) bool {
	return func(o observation) bool { return !o.released(o.ownPV()) && condition(o) }
}

func (o observation) reverting() bool {
	return o.pending() && o.volume.Status.Step == pavv1.StepReverting
}

func (o observation) retained() bool { return o.volume.Status.Phase == pavv1.VolumeRetained }

// deletes reports whether the reclaim policy of the PavVolume is Delete.
func (o observation) deletes() bool {
	return o.volume.Spec.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// unaligned reports whether reclaim policies or finalizers of PavVolume and PersistentVolume have to be changed.
func (o observation) unaligned() bool { return alignment(o) != (changes{}) }

// releasable reports whether the handle of deleted storage can be given to another volume.
func (o observation) releasable() bool {
	return o.volume.Status.FormerHandle != "" && o.volume.Status.Step != pavv1.StepDeleted && len(o.finders) == 0
}

// unproven reports whether the record was restored and Kubernetes has yet to bind its PersistentVolume.
func (o observation) unproven() bool {
	return (o.volume.Status.Handle == "" || o.pending() && o.predates()) && o.pv.Status.Phase != corev1.VolumeBound
}

// becomesReady reports whether a volume in use is to be recorded as ready. A retained volume that waits for a new claim
// still belongs to the administrator.
func (o observation) becomesReady() bool {
	phase := o.volume.Status.Phase
	return o.renews(o.pv) || phase == pavv1.VolumeReady && o.wasLost() || phase != pavv1.VolumeReady && (phase != pavv1.VolumeRetained || o.pv.Status.Phase == corev1.VolumeBound)
}

// reasonLost is the reason of the condition of a volume whose PersistentVolume is gone while a claim is bound to it.
const reasonLost = "Lost"

// wasLost reports whether a condition still says that the PersistentVolume is gone.
func (o observation) wasLost() bool {
	c := meta.FindStatusCondition(o.volume.Status.Conditions, pavv1.VolumeDeleted)
	return c != nil && c.Reason == reasonLost
}

func waitingToDelete(reason, message string, warning bool) decision {
	return rule.Waiting(pavv1.VolumeDeleted, reason, message, warning)
}
