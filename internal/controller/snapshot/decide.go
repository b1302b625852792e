package snapshot

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/workflow"
)

// The steps, besides those of rule.
const (
	// stepAlign: make deletion policy and finalizer of the record agree with the VolumeSnapshotContent.
	stepAlign rule.Step = "Align"

	// stepRecordPod: the pod exists; record its UID, as it may be gone by the next pass.
	stepRecordPod rule.Step = "RecordPod"

	// stepDropPod: remove a pod from the record that was never created, and that is not needed any more.
	stepDropPod rule.Step = "DropPod"

	// stepRecordLateMessage: the node reported the text in /pav/error after the failure was recorded; add it.
	stepRecordLateMessage rule.Step = "RecordLateMessage"

	// stepRecordFailure: record that the pod has failed.
	stepRecordFailure rule.Step = "RecordFailure"

	// stepTakeOver: record the snapshot for which an administrator wrote the VolumeSnapshotContent.
	stepTakeOver rule.Step = "TakeOver"

	// stepBegin: begin an attempt to create the snapshot: become a reader of the volume, and record the pod.
	stepBegin rule.Step = "Begin"

	// stepSync: ask the nodes that have the volume staged to write to the storage what they have in memory.
	stepSync rule.Step = "Sync"

	// stepGiveUpSync: a node does not answer; the attempt fails.
	stepGiveUpSync rule.Step = "GiveUpSync"

	// stepLeave: the storage of the volume is not read any more; let others change it.
	stepLeave rule.Step = "Leave"

	// stepDropReaders: remove readers from the record that do not exist any more.
	stepDropReaders rule.Step = "DropReaders"

	// stepRecordCut: the pod has succeeded, or created /pav/ready; record handle and size.
	stepRecordCut rule.Step = "RecordCut"

	// stepMarkReady: the pod of a snapshot that was cut has succeeded; record that the snapshot can be used.
	stepMarkReady rule.Step = "MarkReady"

	// stepShow: write to the VolumeSnapshotContent what is recorded of the snapshot.
	stepShow rule.Step = "Show"

	// stepRevert: begin to revert a creation that failed or is not needed any more.
	stepRevert rule.Step = "Revert"

	// stepReverted: record that the creation is reverted.
	stepReverted rule.Step = "Reverted"

	// stepMarkDeleting: record that the storage will be deleted, before any deletion pod runs.
	stepMarkDeleting rule.Step = "MarkDeleting"

	// stepDelete: record the deletion pod.
	stepDelete rule.Step = "Delete"

	// stepMarkDeleted: record that the storage is deleted.
	stepMarkDeleted rule.Step = "MarkDeleted"

	// stepRetain: record that the storage now belongs to the administrator.
	stepRetain rule.Step = "Retain"

	// stepRelease: let Kubernetes delete the VolumeSnapshotContent.
	stepRelease rule.Step = "Release"

	// stepForget: no storage is left, or none was ever created; delete the record.
	stepForget rule.Step = "Forget"
)

type table = rule.Table[observation]

// decide is pure: it does no I/O and reads no clock.
func decide(o observation) rule.Decision {
	if len(o.formerReaders) > 0 {
		return rule.Decision{Step: stepDropReaders, Rule: "a reader does not exist any more"}
	}
	d := snapshotTable.Decide(o)
	if pod := o.unrecordedPod(); pod != nil && afterAllPods(d.Step) {
		d = waitForUnrecorded(o, pod)
		d.Rule = "a pod that is not recorded has not ended"
	}
	if o.reading().Holds() && !o.reads(d.Step) {
		return rule.Decision{Step: stepLeave, Rule: "the storage of the volume is not read any more"}
	}
	return d
}

// reads reports whether a pod that reads the volume is recorded, or is about to be.
func (o observation) reads(next rule.Step) bool {
	return next == stepBegin || o.pending() && o.record.Status.Step == pavv1.SnapshotCreating && o.record.Status.Pod != nil
}

// begins reports whether a step begins an attempt.
func begins(s rule.Step) bool { return s == stepBegin || s == stepDelete }

// afterAllPods reports whether a step is taken only after all other pods of the snapshot have ended.
func afterAllPods(s rule.Step) bool {
	return s == stepBegin || s == rule.RunPod || s == stepDelete || s == stepForget || s == stepRelease || s == stepRetain
}

// needsWhole reports whether a step needs the record as the API server has it: templates see its copies of objects, which the cache does
// not keep, or the step cannot be undone.
func needsWhole(s rule.Step) bool {
	return s == stepBegin || s == rule.RunPod || s == stepDelete || s == stepRevert || s == stepMarkDeleting || s == stepForget
}

// waitForUnrecorded decides about a snapshot with a pod that has not ended and is not the recorded one.
func waitForUnrecorded(o observation, pod *corev1.Pod) rule.Decision {
	condition := conditionOf(pod.Labels[pavv1.WorkflowLabel])
	if pod.DeletionTimestamp == nil {
		return rule.Waiting(condition, attempt.ReasonPodStopping, fmt.Sprintf("waiting for pod %s/%s, which is not needed any more and is being stopped", pod.Namespace, pod.Name), false)
	}
	ref := &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	return rule.OfPod(attempt.Attempt{Now: o.now, Ref: ref, Pods: o.Pods}.DecideStopping(), condition)
}

// snapshotTable is for every snapshot.
var snapshotTable = table{
	{Name: "the UID of the pod is not recorded", When: func(o observation) bool { return o.attempt().IsUnrecorded() }, Then: to(stepRecordPod)},
	{Name: "the error text of a failed pod is not recorded", When: func(o observation) bool { return o.lateFailure() != nil }, Then: to(stepRecordLateMessage)},
	{Name: "the deletion policy or the finalizer is to change", When: observation.unaligned, Then: to(stepAlign)},
	{Name: "the record was restored", When: func(o observation) bool { return o.restored() && !o.deleting() }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.SnapshotDeleted, "Restored", restoredText(o.record), true)
	}},
	{Name: "the VolumeSnapshotContent does not show what is recorded", When: observation.contentBehind, Then: to(stepShow)},
	{Name: "the creation is being reverted", When: observation.reverting, Then: deletionPodTable.Decide},
	// A deletion that has begun is completed, whatever else changes.
	{Name: "the snapshot is being deleted", When: func(o observation) bool { return o.is(pavv1.SnapshotDeleting) }, Then: deletionTable.Decide},
	{Name: "the snapshot is retained", When: func(o observation) bool { return o.is(pavv1.SnapshotRetained) }, Then: retainedTable.Decide},
	{Name: "the snapshot is not wanted any more", When: observation.unwanted, Then: unwantedTable.Decide},
	// It reads the volume, which could not change meanwhile.
	{Name: "a pod of a snapshot whose VolumeSnapshotContent is gone is seen to its end", When: func(o observation) bool {
		return o.contentGone() && o.pending() && o.record.Status.Pod != nil
	}, Then: creationPodTable.Decide},
	{Name: "the PavSnapshot of a snapshot in use is deleted", When: func(o observation) bool { return o.deleting() && o.is(pavv1.SnapshotReady) }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.SnapshotDeleted, "InUse", fmt.Sprintf("VolumeSnapshotContent %q still needs the snapshot: delete its VolumeSnapshot", o.record.Spec.ContentRef.Name), true)
	}},
	{Name: "the VolumeSnapshotContent is gone, and the VolumeSnapshot is not", When: observation.contentGone, Then: func(o observation) rule.Decision {
		return rule.InDoubt(rule.Waiting(pavv1.SnapshotDeleted, "SnapshotExists", fmt.Sprintf("VolumeSnapshotContent %q is deleted, and its VolumeSnapshot %q is not: delete it",
			o.record.Spec.ContentRef.Name, o.record.Spec.SnapshotRef.Namespace+"/"+o.record.Spec.SnapshotRef.Name), true))
	}},
	{Name: "the snapshot is not cut", When: observation.pending, Then: pendingTable.Decide},
	{Name: "the snapshot is cut", When: func(o observation) bool { return o.is(pavv1.SnapshotCut) }, Then: cutTable.Decide},
	{Name: "the snapshot is ready", When: rule.Always[observation], Then: to(rule.Done)},
}

// pendingTable is for a snapshot that is wanted and not cut.
var pendingTable = table{
	{Name: "the snapshot exists", When: observation.exists, Then: to(stepTakeOver)},
	{Name: "a pod is recorded", When: func(o observation) bool { return o.record.Status.Pod != nil }, Then: creationPodTable.Decide},
	{Name: "no snapshot can be made", When: func(o observation) bool { return o.refusal() != nil }, Then: func(o observation) rule.Decision { return *o.refusal() }},
	{Name: "the next attempt is not due", When: func(o observation) bool { return creationBackoff(o) > 0 }, Then: rule.Again(creationBackoff)},
	{Name: "the volume must not be read yet", When: func(o observation) bool { return o.obstacle() != nil }, Then: func(o observation) rule.Decision { return *o.obstacle() }},
	{Name: "the snapshot is to be created", When: rule.Always[observation], Then: to(stepBegin)},
}

// creationPodTable is for a recorded creation pod of a snapshot that is not cut.
var creationPodTable = table{
	{Name: "no snapshot can be made any more, and the pod was not created", When: func(o observation) bool { return waitsForSlot(o) && o.refusal() != nil }, Then: to(stepDropPod)},
	{Name: "the volume was staged before the pod was created", When: func(o observation) bool { return waitsForSlot(o) && o.reading().MustWait() }, Then: to(stepDropPod)},
	{Name: "a node has not been asked to write what it has in memory", When: func(o observation) bool { return waitsForSlot(o) && len(o.reading().Unasked()) > 0 }, Then: to(stepSync)},
	{Name: "a node does not write what it has in memory", When: func(o observation) bool { return waitsForSlot(o) && o.reading().IsSyncLate() }, Then: to(stepGiveUpSync)},
	{Name: "a node has yet to write what it has in memory", When: func(o observation) bool { return waitsForSlot(o) && len(o.reading().Unsynced()) > 0 }, Then: func(o observation) rule.Decision {
		return o.reading().AwaitSync(pavv1.SnapshotCreated)
	}},
	{Name: "the creation pod waits for a slot", When: waitsForSlot, Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideQueued(), pavv1.SnapshotCreated)
	}},
	{Name: "the volume was given to another claim while it is read", When: func(o observation) bool { return o.progress() == attempt.Running && o.givenAway() }, Then: to(rule.StopPod)},
	{Name: "the creation pod runs", When: pod(attempt.Running), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideRunning(), pavv1.SnapshotCreated)
	}},
	{Name: "the creation pod is being deleted", When: pod(attempt.Stopping), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideStopping(), pavv1.SnapshotCreated)
	}},
	{Name: "the result of the creation pod is not reported", When: observation.awaitsReport, Then: reporting(pavv1.SnapshotCreated)},
	{Name: "the creation pod has cut the snapshot", When: pod(attempt.Succeeded, attempt.Ready), Then: to(stepRecordCut)},
	{Name: "the creation pod failed", When: rule.Always[observation], Then: to(stepRecordFailure)},
}

// cutTable is for a snapshot that is cut, and whose pod has yet to complete.
var cutTable = table{
	{Name: "the next attempt is not due", When: func(o observation) bool { return o.record.Status.Pod == nil && creationBackoff(o) > 0 }, Then: rule.Again(creationBackoff)},
	{Name: "the processing of the snapshot is to be repeated", When: func(o observation) bool { return o.record.Status.Pod == nil }, Then: func(o observation) rule.Decision {
		if refusal := o.refusal(); refusal != nil {
			return *refusal
		}
		return rule.Decision{Step: stepBegin}
	}},
	{Name: "nothing defines any more how to process the snapshot, and the pod was not created", When: func(o observation) bool { return waitsForSlot(o) && o.refusal() != nil }, Then: to(stepDropPod)},
	{Name: "the pod that is to process the snapshot waits for a slot", When: waitsForSlot, Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideQueued(), pavv1.SnapshotCreated)
	}},
	{Name: "the pod that processes the snapshot runs", When: pod(attempt.Running, attempt.Ready), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideRunning(), pavv1.SnapshotCreated)
	}},
	{Name: "the pod that processes the snapshot is being deleted", When: pod(attempt.Stopping), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideStopping(), pavv1.SnapshotCreated)
	}},
	{Name: "the pod that processes the snapshot has succeeded", When: pod(attempt.Succeeded), Then: to(stepMarkReady)},
	{Name: "the result of the pod that processes the snapshot is not reported", When: pod(attempt.Reporting), Then: reporting(pavv1.SnapshotCreated)},
	{Name: "the pod that processes the snapshot failed", When: rule.Always[observation], Then: to(stepRecordFailure)},
}

func to(next rule.Step) func(observation) rule.Decision { return rule.To[observation](next) }

// pod is true of an observation whose recorded pod is in one of the states.
func pod(states ...attempt.Progress) func(observation) bool {
	return func(o observation) bool { return slices.Contains(states, o.progress()) }
}

// waitsForSlot reports whether the recorded pod is not known to be created.
func waitsForSlot(o observation) bool { return pod(attempt.None, attempt.Intended)(o) }

// awaitsReport reports whether the node of a pod that is over has yet to report its files, among which may be the handle of what it has
// made.
func (o observation) awaitsReport() bool {
	pod := o.pod()
	switch o.progress() {
	case attempt.Reporting, attempt.Succeeded, attempt.Failed:
	default:
		return false
	}
	if workflow.IsReported(pod) || attempt.CertainlyNeverRan(pod, o.NodeGone) {
		return false
	}
	return !o.NodeGone && attempt.UnreportedFor(o.now, pod) < attempt.LongDelay || attempt.HasEndedWithin(o.now, pod, attempt.ResultDelay)
}

// reporting decides about a pod whose files are not reported.
func reporting(condition string) func(observation) rule.Decision {
	return func(o observation) rule.Decision {
		return rule.OfPod(attempt.DecideReporting(o.now, o.pod()), condition)
	}
}

// creationBackoff returns how long the next attempt to create the snapshot has to wait. It does not wait if the definition has changed
// since the last one.
func creationBackoff(o observation) time.Duration {
	status := &o.record.Status
	if status.Failure == nil || o.provisioner == nil || status.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	return o.retryIn(status.Attempt, status.Failure)
}

func (o observation) retryIn(attempts int32, failure *pavv1.WorkflowFailure) time.Duration {
	if o.retry.After(failure.Time.Time) {
		return 0
	}
	return workflow.RetryIn(failure, int(attempts), o.now)
}

// unaligned reports whether deletion policy or finalizer of the record have to change.
func (o observation) unaligned() bool {
	return o.policyNow() != o.record.Spec.DeletionPolicy || o.wantsFinalizer() != controllerutil.ContainsFinalizer(o.record, pavv1.SnapshotFinalizer)
}

// policyNow returns the deletion policy that the record is to have: that of the VolumeSnapshotContent, as long as it exists.
func (o observation) policyNow() pavv1.SnapshotDeletionPolicy {
	if o.content == nil || o.is(pavv1.SnapshotRetained) {
		return o.record.Spec.DeletionPolicy
	}
	if string(o.content.Spec.DeletionPolicy) == string(pavv1.SnapshotPolicyDelete) {
		return pavv1.SnapshotPolicyDelete
	}
	return pavv1.SnapshotPolicyRetain
}

// wantsFinalizer reports whether the record is to have its finalizer. One that is being deleted cannot get it back.
func (o observation) wantsFinalizer() bool {
	if o.deleting() && !controllerutil.ContainsFinalizer(o.record, pavv1.SnapshotFinalizer) {
		return false
	}
	return !o.is(pavv1.SnapshotRetained) || !o.retains()
}

func restoredText(record *pavv1.PavSnapshot) string {
	return fmt.Sprintf("the record was restored from a backup, and another object may have its storage by now, with the handle %q: to delete that storage, delete the PavSnapshot; to keep it, set spec.deletionPolicy to Retain before that", record.Status.Handle)
}
