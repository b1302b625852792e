package bucket

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/workflow"
)

// The steps, besides those of rule.
const (
	// stepRecordPod: the pod exists; record its UID, as it may be gone by the next pass.
	stepRecordPod rule.Step = "RecordPod"

	// stepDropPod: remove a pod from the record that was never created, and that is not needed any more.
	stepDropPod rule.Step = "DropPod"

	// stepRecordLateMessage: the node reported the text in /pav/error after the failure was recorded; add it.
	stepRecordLateMessage rule.Step = "RecordLateMessage"

	// stepRecordFailure: record that the pod has failed.
	stepRecordFailure rule.Step = "RecordFailure"

	// stepBegin: begin an attempt to create the bucket, or to use one that exists.
	stepBegin rule.Step = "Begin"

	// stepCreate: the request is valid; record the creation pod.
	stepCreate rule.Step = "Create"

	// stepRecordCreated: the creation pod has succeeded, or created /pav/ready; record the bucket.
	stepRecordCreated rule.Step = "RecordCreated"

	// stepUpdate: record the update pod.
	stepUpdate rule.Step = "Update"

	// stepRecordUpdated: the update pod has succeeded.
	stepRecordUpdated rule.Step = "RecordUpdated"

	// stepRevert: begin to revert a creation that is not needed any more.
	stepRevert rule.Step = "Revert"

	// stepReverted: record that the creation is reverted.
	stepReverted rule.Step = "Reverted"

	// stepMarkDeleting: record that the bucket will be deleted, before any deletion pod runs.
	stepMarkDeleting rule.Step = "MarkDeleting"

	// stepDelete: record the deletion pod.
	stepDelete rule.Step = "Delete"

	// stepMarkDeleted: record that the bucket is deleted.
	stepMarkDeleted rule.Step = "MarkDeleted"

	// stepRetain: record that the bucket now belongs to the administrator.
	stepRetain rule.Step = "Retain"

	// stepRelease: let the record of a retained bucket be deleted.
	stepRelease rule.Step = "Release"

	// stepSettle: a pod that is not recorded has made a bucket; record that.
	stepSettle rule.Step = "Settle"

	// stepForget: no bucket is left, or none was ever created; delete the record.
	stepForget rule.Step = "Forget"
)

type table = rule.Table[observation]

// decide is pure: it does no I/O and reads no clock.
func decide(o observation) rule.Decision {
	return whileStray(o, bucketTable.Decide(o))
}

// begins reports whether a step begins an attempt.
func begins(s rule.Step) bool { return s == stepBegin || s == stepUpdate || s == stepDelete }

// afterAllPods reports whether a step is taken only after all other pods of the bucket have ended.
func afterAllPods(s rule.Step) bool {
	return begins(s) || s == stepCreate || s == rule.RunPod || s == stepForget || s == stepRetain
}

// waitForUnrecorded decides about a bucket with a pod that has not ended and is not the recorded one.
func waitForUnrecorded(o observation, pod *corev1.Pod) rule.Decision {
	condition := conditionOf(pod.Labels[pavv1.WorkflowLabel])
	if pod.DeletionTimestamp == nil {
		return rule.Waiting(condition, attempt.ReasonPodStopping, fmt.Sprintf("waiting for pod %s/%s, which is not needed any more and is being stopped", pod.Namespace, pod.Name), false)
	}
	ref := &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	return rule.OfPod(attempt.Attempt{Now: o.now, Ref: ref, Pods: o.Pods}.DecideStopping(), condition)
}

// bucketTable is for every bucket.
var bucketTable = table{
	{Name: "the UID of the pod is not recorded", When: func(o observation) bool { return o.attempt().IsUnrecorded() }, Then: to(stepRecordPod)},
	{Name: "the error text of a failed pod is not recorded", When: func(o observation) bool { return o.lateFailure() != nil }, Then: to(stepRecordLateMessage)},
	{Name: "a pod that is not recorded has made a bucket", When: observation.isSettling, Then: to(stepSettle)},
	{Name: "the record was restored", When: func(o observation) bool { return o.restored() && !o.deleting() }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.BucketDeleted, "Restored", fmt.Sprintf("the record was restored from a backup, and bucket %q may be another's by now: if it is this claim's, set status.recordUID to %q; otherwise delete PavBucket %q, which then deletes no bucket",
			o.record.Status.BucketID, o.record.UID, o.record.Name), true)
	}},
	{Name: "the restored record is deleted", When: observation.restored, Then: to(stepForget)},
	{Name: "the creation is being reverted", When: observation.reverting, Then: deletionPodTable.Decide},
	// A deletion that has begun is completed, unless the bucket is to be retained after all.
	{Name: "the bucket is being deleted", When: func(o observation) bool { return o.is(pavv1.BucketDeleting) }, Then: deletionTable.Decide},
	{Name: "the bucket is retained", When: func(o observation) bool { return o.is(pavv1.BucketRetained) }, Then: retainedTable.Decide},
	{Name: "the claim is gone", When: func(o observation) bool { return o.record.Spec.Released }, Then: releasedTable.Decide},
	{Name: "the PavBucket of a claim is deleted", When: observation.deleting, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.BucketDeleted, "InUse", fmt.Sprintf("claim %s/%s still needs the bucket: delete the claim", o.record.Spec.ClaimRef.Namespace, o.record.Spec.ClaimRef.Name), true)
	}},
	{Name: "the bucket is not created", When: observation.pending, Then: pendingTable.Decide},
	{Name: "the bucket is ready", When: rule.Always[observation], Then: readyTable.Decide},
}

// pendingTable is for a bucket that is wanted and not created.
var pendingTable = table{
	{Name: "a validation pod is recorded", When: func(o observation) bool { return o.record.Status.Pod != nil && o.at(pavv1.BucketValidating) }, Then: validationPodTable.Decide},
	{Name: "a creation pod is recorded", When: func(o observation) bool { return o.record.Status.Pod != nil }, Then: creationPodTable.Decide},
	{Name: "no bucket can be created", When: func(o observation) bool { return o.refusal() != nil }, Then: func(o observation) rule.Decision { return *o.refusal() }},
	{Name: "the next attempt is not due", When: func(o observation) bool { return backoff(o) > 0 }, Then: rule.Again(backoff)},
	{Name: "the bucket is to be created", When: rule.Always[observation], Then: to(stepBegin)},
}

// refusal returns why no attempt can begin, or nil.
func (o observation) refusal() *rule.Decision {
	spec := &o.record.Spec
	var d rule.Decision
	switch {
	case o.provisioner == nil:
		d = rule.InDoubt(rule.Waiting(pavv1.BucketCreated, "NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist", spec.Provisioner), true))
	case o.provisioner.DeletionTimestamp != nil:
		d = rule.Waiting(pavv1.BucketCreated, "ProvisionerDeleting", fmt.Sprintf("PavProvisioner %q is being deleted, and serves no new claims", spec.Provisioner), true)
	case !o.provisioner.IsAccepted():
		d = rule.Waiting(pavv1.BucketCreated, "ProvisionerRefused", fmt.Sprintf("PavProvisioner %q is not accepted: %s", spec.Provisioner, o.provisioner.Refusal()), true)
	case !o.provisioner.Spec.HasBuckets():
		d = rule.Waiting(pavv1.BucketCreated, "NoBuckets", fmt.Sprintf("PavProvisioner %q has neither bucketCreation nor bucketAccessGrant, and so no buckets", spec.Provisioner), true)
	case o.holder != "" && !o.isExisting():
		d = rule.Waiting(pavv1.BucketCreated, "BucketNameTaken", fmt.Sprintf("bucket %q is another claim's: choose another name, or none", spec.BucketName), true)
	default:
		return nil
	}
	return &d
}

// validationPodTable is for a recorded validation pod.
var validationPodTable = table{
	{Name: "the request has changed, and the validation pod was not created", When: func(o observation) bool { return waitsForSlot(o) && o.refusal() != nil }, Then: to(stepDropPod)},
	{Name: "the validation pod waits for a slot", When: waitsForSlot, Then: queued(pavv1.BucketCreated)},
	{Name: "the validation pod runs", When: pod(attempt.Running, attempt.Ready), Then: running(pavv1.BucketCreated)},
	{Name: "the validation pod is being deleted", When: pod(attempt.Stopping), Then: stopping(pavv1.BucketCreated)},
	{Name: "the result of the validation pod is not reported", When: pod(attempt.Reporting), Then: reporting(pavv1.BucketCreated)},
	{Name: "the validation pod succeeded", When: pod(attempt.Succeeded), Then: to(stepCreate)},
	{Name: "the validation pod failed", When: rule.Always[observation], Then: to(stepRecordFailure)},
}

// creationPodTable is for a recorded creation pod.
var creationPodTable = table{
	{Name: "no bucket can be created any more, and the pod was not created", When: func(o observation) bool { return waitsForSlot(o) && o.refusal() != nil }, Then: to(stepDropPod)},
	{Name: "the creation pod waits for a slot", When: waitsForSlot, Then: queued(pavv1.BucketCreated)},
	{Name: "the creation pod runs", When: pod(attempt.Running), Then: running(pavv1.BucketCreated)},
	{Name: "the creation pod is being deleted", When: pod(attempt.Stopping), Then: stopping(pavv1.BucketCreated)},
	{Name: "the result of the creation pod is not reported", When: observation.awaitsReport, Then: reporting(pavv1.BucketCreated)},
	// What it does after /pav/ready must not matter, but nothing else works on the bucket until it has ended.
	{Name: "the creation pod has created the bucket and goes on", When: pod(attempt.Ready), Then: running(pavv1.BucketCreated)},
	{Name: "the creation pod has created the bucket", When: pod(attempt.Succeeded), Then: to(stepRecordCreated)},
	{Name: "the creation pod failed", When: rule.Always[observation], Then: to(stepRecordFailure)},
}

// readyTable is for a bucket to which access can be granted.
var readyTable = table{
	{Name: "an update pod is recorded", When: func(o observation) bool { return o.record.Status.Pod != nil }, Then: updatePodTable.Decide},
	{Name: "the bucket is as the claim asks for", When: func(o observation) bool { return !o.isDue() }, Then: to(rule.Done)},
	{Name: "the next update is not due", When: func(o observation) bool { return backoff(o) > 0 }, Then: rule.Again(backoff)},
	{Name: "the bucket is to be updated", When: rule.Always[observation], Then: to(stepUpdate)},
}

// updatePodTable is for a recorded update pod.
var updatePodTable = table{
	{Name: "nothing is to be updated any more, and the pod was not created", When: func(o observation) bool { return waitsForSlot(o) && !o.isDue() }, Then: to(stepDropPod)},
	{Name: "the update pod waits for a slot", When: waitsForSlot, Then: queued(pavv1.BucketUpdated)},
	{Name: "the update pod runs", When: pod(attempt.Running, attempt.Ready), Then: running(pavv1.BucketUpdated)},
	{Name: "the update pod is being deleted", When: pod(attempt.Stopping), Then: stopping(pavv1.BucketUpdated)},
	{Name: "the result of the update pod is not reported", When: pod(attempt.Reporting), Then: reporting(pavv1.BucketUpdated)},
	{Name: "the update pod succeeded", When: pod(attempt.Succeeded), Then: to(stepRecordUpdated)},
	{Name: "the update pod failed", When: rule.Always[observation], Then: to(stepRecordFailure)},
}

func to(next rule.Step) func(observation) rule.Decision { return rule.To[observation](next) }

func queued(condition string) func(observation) rule.Decision {
	return func(o observation) rule.Decision { return rule.OfPod(o.attempt().DecideQueued(), condition) }
}

func running(condition string) func(observation) rule.Decision {
	return func(o observation) rule.Decision { return rule.OfPod(o.attempt().DecideRunning(), condition) }
}

func stopping(condition string) func(observation) rule.Decision {
	return func(o observation) rule.Decision { return rule.OfPod(o.attempt().DecideStopping(), condition) }
}

// reporting decides about a pod whose files are not reported.
func reporting(condition string) func(observation) rule.Decision {
	return func(o observation) rule.Decision {
		return rule.OfPod(attempt.DecideReporting(o.now, o.pod()), condition)
	}
}

// pod is true of an observation whose recorded pod is in one of the states.
func pod(states ...attempt.Progress) func(observation) bool {
	return func(o observation) bool { return slices.Contains(states, o.progress()) }
}

// waitsForSlot reports whether the recorded pod is not known to be created.
func waitsForSlot(o observation) bool { return pod(attempt.None, attempt.Intended)(o) }

// awaitsReport reports whether the node of a pod that is over has yet to report its files, among which are the identifier of the bucket,
// and whose it is.
func (o observation) awaitsReport() bool {
	switch o.progress() {
	case attempt.Reporting, attempt.Succeeded, attempt.Failed:
		return o.awaitsReportOf(o.pod(), o.NodeGone)
	default:
		return false
	}
}

// awaitsReportOf is awaitsReport for a creation pod that is over, recorded or not. Gone says that its node does not exist any more.
func (o observation) awaitsReportOf(pod *corev1.Pod, gone bool) bool {
	if workflow.IsReported(pod) || attempt.CertainlyNeverRan(pod, gone) {
		return false
	}
	return !gone && attempt.UnreportedFor(o.now, pod) < attempt.LongDelay || attempt.HasEndedWithin(o.now, pod, attempt.ResultDelay)
}

// backoff returns how long the next attempt to create or update the bucket has to wait. It does not wait if the definition has changed
// since the last one.
func backoff(o observation) time.Duration {
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
