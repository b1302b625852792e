package access

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

	// stepRecordFailure: record that the pod has failed. The account of a grant that failed is to be revoked.
	stepRecordFailure rule.Step = "RecordFailure"

	// stepGrant: record the grant pod, or take the credentials that all accesses share.
	stepGrant rule.Step = "Grant"

	// stepMarkDelivering: the grant pod has succeeded; record the account before its credentials are written.
	stepMarkDelivering rule.Step = "MarkDelivering"

	// stepDeliver: write the credentials to the Secrets, and record these.
	stepDeliver rule.Step = "Deliver"

	// stepDeleteKey: delete the key of an attempt that is over.
	stepDeleteKey rule.Step = "DeleteKey"

	// stepRelease: the access is not wanted any more; all of its accounts are to be revoked.
	stepRelease rule.Step = "Release"

	// stepRevoke: record the revocation pod of the account that is due.
	stepRevoke rule.Step = "Revoke"

	// stepRecordRevoked: the account is revoked.
	stepRecordRevoked rule.Step = "RecordRevoked"

	// stepSettle: a pod that is not recorded has made an account; record that it is to be revoked.
	stepSettle rule.Step = "Settle"

	// stepLetGo: no node uses a former account any more that was held for the volume; let it be revoked.
	stepLetGo rule.Step = "LetGo"

	// stepRenewStage: a node has the volume staged with a former account; have it staged again with the present one.
	stepRenewStage rule.Step = "RenewStage"

	// stepForget: no account is left; delete the Secrets and the record.
	stepForget rule.Step = "Forget"
)

type table = rule.Table[observation]

// decide is pure: it does no I/O and reads no clock.
func decide(o observation) rule.Decision {
	return whileStray(o, accessTable.Decide(o))
}

// begins reports whether a step begins an attempt.
func begins(s rule.Step) bool { return s == stepGrant || s == stepRevoke }

// afterAllPods reports whether a step is taken only after all other pods of the access have ended.
func afterAllPods(s rule.Step) bool { return begins(s) || s == rule.RunPod || s == stepForget }

// waitForUnrecorded decides about an access with a pod that has not ended and is not the recorded one.
func waitForUnrecorded(o observation, pod *corev1.Pod) rule.Decision {
	condition := conditionOf(pod.Labels[pavv1.WorkflowLabel])
	if pod.DeletionTimestamp == nil {
		return rule.Waiting(condition, attempt.ReasonPodStopping, fmt.Sprintf("waiting for pod %s/%s, which is not needed any more and is being stopped", pod.Namespace, pod.Name), false)
	}
	ref := &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	return rule.OfPod(attempt.Attempt{Now: o.now, Ref: ref, Pods: o.Pods}.DecideStopping(), condition)
}

// accessTable is for every access.
var accessTable = table{
	{Name: "the UID of the pod is not recorded", When: func(o observation) bool { return o.attempt().IsUnrecorded() }, Then: to(stepRecordPod)},
	{Name: "the error text of a failed pod is not recorded", When: func(o observation) bool { return o.lateFailure() != nil }, Then: to(stepRecordLateMessage)},
	{Name: "a pod that is not recorded has made an account", When: func(o observation) bool { return o.settling() != nil }, Then: to(stepSettle)},
	{Name: "the record was restored", When: func(o observation) bool { return o.restored() && !o.deleting() }, Then: func(o observation) rule.Decision {
		return rule.Waiting(pavv1.AccessRevokedCondition, "Restored", fmt.Sprintf("the record was restored from a backup, and its accounts may be others' by now: if they are this access's, set status.recordUID to %q; otherwise delete PavBucketAccess %q, which then revokes nothing",
			o.record.UID, o.record.Name), true)
	}},
	{Name: "the restored record is deleted", When: observation.restored, Then: to(stepForget)},
	{Name: "the key of an attempt that is over is left", When: observation.isKeyLeft, Then: to(stepDeleteKey)},
	{Name: "an account is being revoked", When: func(o observation) bool { return o.at(pavv1.AccessRevokingStep) && o.record.Status.Pod != nil }, Then: revocationPodTable.Decide},
	{Name: "the access is not wanted any more", When: func(o observation) bool { return o.record.Spec.Released }, Then: releasedTable.Decide},
	{Name: "the PavBucketAccess of an access in use is deleted", When: observation.deleting, Then: func(o observation) rule.Decision {
		r := o.record.Spec.Requester
		return rule.Waiting(pavv1.AccessRevokedCondition, "InUse", fmt.Sprintf("%s %s/%s still needs the access: delete that", r.Kind, r.Namespace, r.Name), true)
	}},
	{Name: "credentials are to be delivered", When: func(o observation) bool { return o.at(pavv1.AccessDelivering) }, Then: to(stepDeliver)},
	{Name: "access is being granted", When: func(o observation) bool { return o.record.Status.Pod != nil }, Then: grantPodTable.Decide},
	// An attempt that failed, or whose outcome is not known, is undone before the next.
	{Name: "the account of an attempt that failed is to be revoked", When: observation.hasFailedAccount, Then: revocationTable.Decide},
	{Name: "clients have no access", When: func(o observation) bool { return o.record.Status.Current == nil }, Then: grantTable.Decide},
	// Credentials may end, so that a revocation that fails must not be in the way of the next account.
	{Name: "the account is to be replaced, and can be", When: func(o observation) bool { return o.isRotationDue() && o.refusal() == nil && backoff(o) <= 0 }, Then: to(stepGrant)},
	{Name: "a node is to stage the volume with the present account", When: func(o observation) bool { return o.outdated() != nil }, Then: to(stepRenewStage)},
	{Name: "no node uses an account that was replaced", When: func(o observation) bool { return o.unused() != nil }, Then: to(stepLetGo)},
	{Name: "an account that was replaced is to be revoked", When: observation.isRevocationDue, Then: revocationTable.Decide},
	{Name: "the account is to be replaced", When: observation.isRotationDue, Then: grantTable.Decide},
	{Name: "clients have access", When: rule.Always[observation], Then: rule.Again(observation.nextLook)},
}

// hasFailedAccount reports whether an account is to be revoked that an attempt may have made that failed.
func (o observation) hasFailedAccount() bool {
	account, _ := due(o.record, o.now)
	return account != nil && account.GrantedAt == nil
}

// revoking returns the account that the current revocation pod is about, or the next that is due; nil if someone has removed it from the
// record. A pod that exists says which account it is about: another one may have come first meanwhile. A new leader's clock may be behind
// that of the former.
func (o observation) revoking() *pavv1.GrantedAccount {
	if pod := o.pod(); pod != nil && o.at(pavv1.AccessRevokingStep) {
		return formerOf(o.record, pod)
	}
	account, _ := due(o.record, o.now)
	if account == nil && o.at(pavv1.AccessRevokingStep) {
		account = nextFormer(o.record)
	}
	return account
}

// isRevocationDue reports whether a former account is to be revoked now.
func (o observation) isRevocationDue() bool {
	account, _ := due(o.record, o.now)
	return account != nil
}

// nextLook returns when something is due next; 0 for never.
func (o observation) nextLook() time.Duration {
	next := o.nextRotation()
	if _, at := due(o.record, o.now); !at.IsZero() && (next.IsZero() || at.Before(next)) {
		next = at
	}
	if next.IsZero() {
		return 0
	}
	return max(next.Sub(o.now), time.Second)
}

// grantTable is for an access that is to get an account.
var grantTable = table{
	{Name: "no access can be granted", When: func(o observation) bool { return o.refusal() != nil }, Then: func(o observation) rule.Decision { return *o.refusal() }},
	{Name: "the next attempt is not due", When: func(o observation) bool { return backoff(o) > 0 }, Then: rule.Again(backoff)},
	{Name: "access is to be granted", When: rule.Always[observation], Then: to(stepGrant)},
}

// refusal returns why no attempt can begin, or nil.
func (o observation) refusal() *rule.Decision {
	spec := &o.record.Spec
	condition := pavv1.AccessGranted
	if o.record.Status.Current != nil {
		condition = pavv1.AccessRotated
	}
	var d rule.Decision
	switch {
	case o.provisioner == nil:
		d = rule.InDoubt(rule.Waiting(condition, "NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist", spec.Provisioner), true))
	case !o.provisioner.IsAccepted():
		d = rule.Waiting(condition, "ProvisionerRefused", fmt.Sprintf("PavProvisioner %q is not accepted: %s", spec.Provisioner, o.provisioner.Refusal()), true)
	case o.provisioner.Spec.BucketAccessGrant == nil:
		d = rule.Waiting(condition, "NoAccess", fmt.Sprintf("PavProvisioner %q has no bucketAccessGrant, so that nobody gets access to its buckets", spec.Provisioner), true)
	case o.unready() != "":
		d = rule.InDoubt(rule.Waiting(condition, "BucketNotReady", fmt.Sprintf("waiting for PavBucket %q", o.unready()), false))
	default:
		return nil
	}
	return &d
}

// grantPodTable is for a recorded grant pod.
var grantPodTable = table{
	{Name: "no access can be granted any more, and the pod was not created", When: func(o observation) bool { return waitsForSlot(o) && o.refusal() != nil }, Then: to(stepDropPod)},
	{Name: "the grant pod waits for a slot", When: waitsForSlot, Then: func(o observation) rule.Decision { return rule.OfPod(o.attempt().DecideQueued(), o.condition()) }},
	{Name: "the grant pod runs", When: pod(attempt.Running), Then: func(o observation) rule.Decision { return rule.OfPod(o.attempt().DecideRunning(), o.condition()) }},
	{Name: "the grant pod is being deleted", When: pod(attempt.Stopping), Then: func(o observation) rule.Decision { return rule.OfPod(o.attempt().DecideStopping(), o.condition()) }},
	{Name: "the result of the grant pod is not reported", When: observation.awaitsReport, Then: func(o observation) rule.Decision {
		return rule.OfPod(attempt.DecideReporting(o.now, o.pod()), o.condition())
	}},
	// What it does after /pav/ready must not matter, but nothing else works on the buckets until it has ended.
	{Name: "the grant pod has granted access and goes on", When: pod(attempt.Ready), Then: func(o observation) rule.Decision { return rule.OfPod(o.attempt().DecideRunning(), o.condition()) }},
	{Name: "the grant pod has granted access", When: pod(attempt.Succeeded), Then: to(stepMarkDelivering)},
	{Name: "the grant pod failed", When: rule.Always[observation], Then: to(stepRecordFailure)},
}

// releasedTable is for an access that is not wanted any more.
var releasedTable = table{
	{Name: "the grant pod of an access that is not wanted was not created", When: func(o observation) bool { return o.record.Status.Pod != nil && waitsForSlot(o) }, Then: to(stepDropPod)},
	{Name: "the grant pod of an access that is not wanted runs", When: pod(attempt.Running, attempt.Ready), Then: to(rule.StopPod)},
	{Name: "the grant pod of an access that is not wanted is being deleted", When: pod(attempt.Stopping), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideStopping(), pavv1.AccessRevokedCondition)
	}},
	{Name: "the result of the grant pod of an access that is not wanted is not reported", When: func(o observation) bool {
		return o.record.Status.Pod != nil && o.awaitsReport()
	}, Then: func(o observation) rule.Decision {
		return rule.OfPod(attempt.DecideReporting(o.now, o.pod()), pavv1.AccessRevokedCondition)
	}},
	{Name: "accounts of an access that is not wanted are in use", When: func(o observation) bool {
		return o.record.Status.Current != nil || o.record.Status.Granting != nil || o.record.Status.Pod != nil
	}, Then: to(stepRelease)},
	{Name: "an account of an access that is not wanted is left", When: observation.isRevocationDue, Then: revocationTable.Decide},
	{Name: "no account is left", When: rule.Always[observation], Then: to(stepForget)},
}

// revocationTable is for an account that is to be revoked.
var revocationTable = table{
	{Name: "the credentials that are to be revoked are those that all accesses share", When: func(o observation) bool {
		account, _ := due(o.record, o.now)
		return account.Shared
	}, Then: to(stepRecordRevoked)},
	{Name: "there is no provisioner to revoke with", When: func(o observation) bool { return o.provisioner == nil }, Then: func(o observation) rule.Decision {
		account, _ := due(o.record, o.now)
		return rule.InDoubt(rule.Waiting(pavv1.AccessRevokedCondition, "NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, and only it defines how to revoke account %q: create it again; or delete the account by hand, then remove it from status.former of PavBucketAccess %q",
			o.record.Spec.Provisioner, idOf(account), o.record.Name), true))
	}},
	{Name: "nothing is to be done to revoke an account", When: func(o observation) bool { return !o.hasRevocationPod() }, Then: to(stepRecordRevoked)},
	{Name: "the next revocation pod is not due", When: func(o observation) bool { return revocationBackoff(o) > 0 }, Then: rule.Again(revocationBackoff)},
	{Name: "a revocation pod is due", When: rule.Always[observation], Then: to(stepRevoke)},
}

func (o observation) hasRevocationPod() bool {
	r := o.provisioner.Spec.BucketAccessRevoke
	return r != nil && r.PodTemplate != nil
}

// revocationPodTable is for a recorded revocation pod.
var revocationPodTable = table{
	{Name: "the revocation pod waits for a slot, and there is no provisioner", When: func(o observation) bool { return waitsForSlot(o) && o.provisioner == nil }, Then: to(stepDropPod)},
	{Name: "the revocation pod waits for a slot", When: waitsForSlot, Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideQueued(), pavv1.AccessRevokedCondition)
	}},
	{Name: "the revocation pod runs", When: pod(attempt.Running, attempt.Ready), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideRunning(), pavv1.AccessRevokedCondition)
	}},
	{Name: "the revocation pod is being deleted", When: pod(attempt.Stopping), Then: func(o observation) rule.Decision {
		return rule.OfPod(o.attempt().DecideStopping(), pavv1.AccessRevokedCondition)
	}},
	{Name: "the result of the revocation pod is not reported", When: pod(attempt.Reporting), Then: func(o observation) rule.Decision {
		return rule.OfPod(attempt.DecideReporting(o.now, o.pod()), pavv1.AccessRevokedCondition)
	}},
	{Name: "the revocation pod succeeded", When: pod(attempt.Succeeded), Then: to(stepRecordRevoked)},
	{Name: "the revocation pod failed", When: rule.Always[observation], Then: to(stepRecordFailure)},
}

func to(next rule.Step) func(observation) rule.Decision { return rule.To[observation](next) }

// pod is true of an observation whose recorded pod is in one of the states.
func pod(states ...attempt.Progress) func(observation) bool {
	return func(o observation) bool { return slices.Contains(states, o.progress()) }
}

// waitsForSlot reports whether the recorded pod is not known to be created.
func waitsForSlot(o observation) bool { return pod(attempt.None, attempt.Intended)(o) }

// awaitsReport reports whether the node of a grant pod that is over has yet to report its files, which nobody else has.
func (o observation) awaitsReport() bool {
	switch o.progress() {
	case attempt.Reporting, attempt.Succeeded, attempt.Failed:
		return o.awaitsReportOf(o.pod(), o.NodeGone)
	default:
		return false
	}
}

// awaitsReportOf is awaitsReport for a grant pod that is over, recorded or not. Gone says that its node does not exist any more.
func (o observation) awaitsReportOf(pod *corev1.Pod, gone bool) bool {
	if workflow.IsReported(pod) || attempt.CertainlyNeverRan(pod, gone) {
		return false
	}
	return !gone && attempt.UnreportedFor(o.now, pod) < attempt.LongDelay || attempt.HasEndedWithin(o.now, pod, attempt.ResultDelay)
}

// backoff returns how long the next grant has to wait. It does not wait if the definition has changed since the last one.
func backoff(o observation) time.Duration {
	status := &o.record.Status
	if status.Failure == nil || o.provisioner == nil || status.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	return o.retryIn(status.Attempt, status.Failure)
}

// revocationBackoff returns how long the next revocation has to wait.
func revocationBackoff(o observation) time.Duration {
	status := &o.record.Status
	if status.RevocationFailure == nil || o.provisioner == nil || status.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	return o.retryIn(status.RevocationAttempt, status.RevocationFailure)
}

func (o observation) retryIn(attempts int32, failure *pavv1.WorkflowFailure) time.Duration {
	if o.retry.After(failure.Time.Time) {
		return 0
	}
	return workflow.RetryIn(failure, int(attempts), o.now)
}
