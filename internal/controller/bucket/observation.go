package bucket

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/podrun"
	"github.com/albertofaria/pav/internal/workflow"
)

// kind is the kind of the records, as owner of pods.
const kind = "PavBucket"

// observation has everything that the decision about a bucket depends on.
type observation struct {
	record *pavv1.PavBucket

	// now is when it was made.
	now time.Time

	// provisioner is the PavProvisioner of the bucket; nil if it does not exist.
	provisioner *pavv1.PavProvisioner

	// holder is the name of another PavBucket that has the bucket rather than this one, or "".
	holder string

	// owner is the name of another PavBucket that has the bucket as well, so that it must not be deleted, or "".
	owner string

	// accesses says who has access to the bucket, one text for each PavBucketAccess.
	accesses []string

	podrun.Found

	// retry is when a retry was requested, if no attempt has begun since; else the zero time.
	retry time.Time

	// contended says that other objects of the provisioner wait for a slot.
	contended bool
}

// pending reports whether the bucket is not created yet.
func (o observation) pending() bool {
	phase := o.record.Status.Phase
	return phase == "" || phase == pavv1.BucketPending
}

func (o observation) is(phase pavv1.BucketPhase) bool { return o.record.Status.Phase == phase }

func (o observation) at(step pavv1.BucketStep) bool { return o.record.Status.Step == step }

func (o observation) reverting() bool { return o.pending() && o.at(pavv1.BucketReverting) }

// isExisting reports whether PaV neither creates nor deletes the bucket.
func (o observation) isExisting() bool { return o.record.Spec.ExistingBucketID != "" }

// deleting reports whether the PavBucket is being deleted.
func (o observation) deleting() bool { return o.record.DeletionTimestamp != nil }

// restored reports whether the record was restored from a backup, so that it may be about a bucket that others have now.
func (o observation) restored() bool {
	uid := o.record.Status.RecordUID
	return uid != "" && uid != o.record.UID
}

// isDue reports whether the bucket is to be updated: the claim asks for something else than the bucket was created with.
func (o observation) isDue() bool {
	return o.provisioner != nil && o.provisioner.Spec.BucketUpdate != nil && configuration(o.record) != o.record.Status.Configured
}

// configuration returns a short name for what a claim asks for and may change.
func configuration(record *pavv1.PavBucket) string {
	text, err := json.Marshal([]any{record.Spec.AdditionalConfig, record.Spec.Quota})
	if err != nil {
		return "" // such values have no such error
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:10])
}

// workflows are the workflows of each step; words say what a pod of the step does.
var (
	workflows = map[pavv1.BucketStep]string{
		pavv1.BucketValidating: pavv1.WorkflowBucketValidation, pavv1.BucketCreating: pavv1.WorkflowBucketCreation,
		pavv1.BucketUpdating: pavv1.WorkflowBucketUpdate, pavv1.BucketReverting: pavv1.WorkflowBucketDeletion,
		pavv1.BucketDeletingStep: pavv1.WorkflowBucketDeletion,
	}
	words = map[pavv1.BucketStep]string{
		pavv1.BucketValidating: "is validating the request", pavv1.BucketCreating: "is creating the bucket",
		pavv1.BucketUpdating: "is updating the bucket", pavv1.BucketReverting: "is reverting the creation of the bucket",
		pavv1.BucketDeletingStep: "is deleting the bucket",
	}
)

// conditionOf returns the condition that reports a workflow.
func conditionOf(workflow string) string {
	switch workflow {
	case pavv1.WorkflowBucketDeletion:
		return pavv1.BucketDeleted
	case pavv1.WorkflowBucketUpdate:
		return pavv1.BucketUpdated
	default:
		return pavv1.BucketCreated
	}
}

// purpose returns what the recorded pod of a bucket is for.
func purpose(record *pavv1.PavBucket) podrun.Purpose {
	step := record.Status.Step
	return podrun.Purpose{Workflow: workflows[step], Condition: conditionOf(workflows[step]), Step: string(step), Doing: words[step]}
}

// attempt returns the recorded pod and its state.
func (o observation) attempt() attempt.Attempt {
	status := &o.record.Status
	a := attempt.Attempt{
		Now: o.now, Ref: status.Pod, Pods: o.Pods, Object: "pavbucket/" + o.record.Name, Step: string(status.Step), Doing: words[status.Step],
		NeedsResult: status.Step == pavv1.BucketCreating, ByPhase: workflows[status.Step] == pavv1.WorkflowBucketDeletion,
		Contended: o.contended, Retried: !o.retry.IsZero(),
	}
	if c := meta.FindStatusCondition(status.Conditions, conditionOf(workflows[status.Step])); c != nil {
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

// unrecordedPod returns a pod of the bucket that has not ended and is not the recorded one, or nil.
func (o observation) unrecordedPod() *corev1.Pod {
	recorded := o.pod()
	for i := range o.Pods {
		if pod := &o.Pods[i]; pod != recorded && !workflow.Judge(pod).IsOver() {
			return pod
		}
	}
	return nil
}

// mayHaveRun reports whether the recorded pod may have changed something.
func (o observation) mayHaveRun() bool {
	pod := o.pod()
	return o.attempt().HasBegun() && (pod == nil || !attempt.CertainlyNeverRan(pod, o.NodeGone))
}

// created reports whether the recorded creation pod has said that the bucket is the claim's.
func (o observation) created() bool {
	pod := o.pod()
	return pod != nil && provesCreation(pod)
}

// runsUnrecorded reports whether a pod runs that is not the recorded one.
func (o observation) runsUnrecorded() bool { return o.unrecordedPod() != nil }
