package access

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/podrun"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// kind is the kind of the records, as owner of pods.
const kind = "PavBucketAccess"

// observation has everything that the decision about an access depends on.
type observation struct {
	record *pavv1.PavBucketAccess

	// now is when it was made.
	now time.Time

	// provisioner is the PavProvisioner of the access; nil if it does not exist.
	provisioner *pavv1.PavProvisioner

	// buckets are the PavBuckets of the access that exist, in the order of the access.
	buckets []*pavv1.PavBucket

	// stages are the PavStages of the volume that has access, as far as they hold it; only if a former account is held.
	stages []*pavv1.PavStage

	// shown is the number of the account that the PavVolume shows; nil if it shows none, or where stages are not renewed.
	shown *int32

	podrun.Found

	// retry is when a retry was requested, if no attempt has begun since; else the zero time.
	retry time.Time

	// contended says that other objects of the provisioner wait for a slot.
	contended bool
}

// deleting reports whether the PavBucketAccess is being deleted.
func (o observation) deleting() bool { return o.record.DeletionTimestamp != nil }

func (o observation) at(step pavv1.AccessStep) bool { return o.record.Status.Step == step }

// restored reports whether the record was restored from a backup, so that its accounts may be others' by now.
func (o observation) restored() bool {
	uid := o.record.Status.RecordUID
	return uid != "" && uid != o.record.UID
}

// unready returns the name of a PavBucket of the access that is not ready, or "". That of one that was restored from a backup may be another's
// bucket by now.
func (o observation) unready() string {
	for _, accessed := range o.record.Spec.Buckets {
		i := slices.IndexFunc(o.buckets, func(b *pavv1.PavBucket) bool { return b.Name == accessed.Bucket })
		// An access to a bucket that is given up goes on, and the bucket waits for its end.
		if i < 0 || o.buckets[i].Status.Phase != pavv1.BucketReady || o.buckets[i].Spec.Released && o.record.Status.Current == nil || isRestored(o.buckets[i]) {
			return accessed.Bucket
		}
	}
	return ""
}

// isRestored reports whether the record of a bucket was restored from a backup.
func isRestored(bucket *pavv1.PavBucket) bool {
	return bucket.Status.RecordUID != "" && bucket.Status.RecordUID != bucket.UID
}

// isKeyLeft reports whether the key of an attempt that is over is left.
func (o observation) isKeyLeft() bool {
	return o.record.Status.Key != "" && o.record.Status.Granting == nil
}

// mayHaveRun reports whether the recorded pod may have changed something.
func (o observation) mayHaveRun() bool {
	pod := o.pod()
	return o.attempt().HasBegun() && (pod == nil || !attempt.CertainlyNeverRan(pod, o.NodeGone))
}

// nextRotation returns when the present account is to be replaced; the zero time for never.
func (o observation) nextRotation() time.Time {
	if o.provisioner == nil {
		return time.Time{}
	}
	return podplan.NextRotation(o.record, o.provisioner.Spec.BucketAccessGrant)
}

// isRotationDue reports whether the present account is to be replaced.
func (o observation) isRotationDue() bool {
	at := o.nextRotation()
	return !at.IsZero() && !o.now.Before(at)
}

// workflows are the workflows of each step; words say what a pod of the step does.
var (
	workflows = map[pavv1.AccessStep]string{
		pavv1.AccessGranting: pavv1.WorkflowGrant, pavv1.AccessDelivering: pavv1.WorkflowGrant, pavv1.AccessRevokingStep: pavv1.WorkflowRevocation,
	}
	words = map[pavv1.AccessStep]string{
		pavv1.AccessGranting: "is granting access", pavv1.AccessDelivering: "has granted access", pavv1.AccessRevokingStep: "is revoking an account",
	}
)

// conditionOf returns the condition that reports a workflow.
func conditionOf(workflow string) string {
	if workflow == pavv1.WorkflowRevocation {
		return pavv1.AccessRevokedCondition
	}
	return pavv1.AccessGranted
}

// purpose returns what the recorded pod of an access is for. While clients have access, a rotation has a condition of its own.
func purpose(record *pavv1.PavBucketAccess) podrun.Purpose {
	step := record.Status.Step
	condition := conditionOf(workflows[step])
	if condition == pavv1.AccessGranted && record.Status.Current != nil {
		condition = pavv1.AccessRotated
	}
	return podrun.Purpose{Workflow: workflows[step], Condition: condition, Step: string(step), Doing: words[step]}
}

// condition returns the condition that reports the current step.
func (o observation) condition() string { return purpose(o.record).Condition }

// attempt returns the recorded pod and its state.
func (o observation) attempt() attempt.Attempt {
	status := &o.record.Status
	a := attempt.Attempt{
		Now: o.now, Ref: status.Pod, Pods: o.Pods, Object: "pavbucketaccess/" + o.record.Name, Step: string(status.Step), Doing: words[status.Step],
		NeedsResult: workflows[status.Step] == pavv1.WorkflowGrant, ByPhase: workflows[status.Step] == pavv1.WorkflowRevocation,
		Contended: o.contended, Retried: !o.retry.IsZero(),
	}
	if c := meta.FindStatusCondition(status.Conditions, o.condition()); c != nil {
		a.Reported = c.Reason
	}
	return a
}

func (o observation) pod() *corev1.Pod { return o.attempt().Pod() }

func (o observation) progress() attempt.Progress { return o.attempt().Progress() }

// lateFailure returns a recorded failure with the text in /pav/error, which was reported after the failure was recorded; nil if there is
// no such failure.
func (o observation) lateFailure() *pavv1.WorkflowFailure {
	return attempt.LateFailure(o.Pods, o.record.Status.Failures()...)
}

// unrecordedPod returns a pod of the access that has not ended and is not the recorded one, or nil.
func (o observation) unrecordedPod() *corev1.Pod {
	recorded := o.pod()
	for i := range o.Pods {
		if pod := &o.Pods[i]; pod != recorded && !workflow.Judge(pod).IsOver() {
			return pod
		}
	}
	return nil
}
