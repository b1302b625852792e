package bucket

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/podrun"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// A pod is stray if a former leader, which stalled meanwhile, creates it after the present one has removed it from the record. The bucket
// that it makes must not be lost.

// madeBy returns the identifier of the bucket that a creation pod may have made: the planned one, or else what the pod has told, or else
// the name of the bucket.
func madeBy(record *pavv1.PavBucket, planned string, pod *corev1.Pod) string {
	told := ""
	if pod != nil {
		if result, err := workflow.ResultOf(pod); err == nil && result != nil && workflow.CheckID(result.BucketID) == nil {
			told = result.BucketID
		}
	}
	return cmp.Or(planned, told, record.Spec.BucketName)
}

// provesCreation reports whether a creation pod has said that the bucket is the claim's.
func provesCreation(pod *corev1.Pod) bool {
	result, err := workflow.ResultOf(pod)
	return err == nil && result != nil && result.Created
}

// isStray reports whether a pod may have made a bucket that the record does not have. Its finalizer says that nobody has recorded its
// outcome, unless that was a moment ago; gone says that its node does not exist any more.
func isStray(record *pavv1.PavBucket, pod *corev1.Pod, gone bool) bool {
	if pod.Labels[pavv1.WorkflowLabel] != pavv1.WorkflowBucketCreation || !controllerutil.ContainsFinalizer(pod, pavv1.PodFinalizer) || podrun.Names(record, pod) {
		return false
	}
	if workflow.Judge(pod).IsOver() && (attempt.CertainlyNeverRan(pod, gone) || attempt.IsInfeasible(pod)) {
		return false
	}
	status, id := &record.Status, madeBy(record, pod.Annotations[pavv1.PlannedBucketAnnotation], pod)
	if status.BucketID == id {
		// A deletion pod that is yet to begin begins after this one.
		return status.Step == pavv1.BucketDeletedStep || workflows[status.Step] == pavv1.WorkflowBucketDeletion && status.Pod != nil && status.Pod.UID != ""
	}
	return !status.MayExist || status.MayExistID != id || podplan.IsOfClaim(record, id) || provesCreation(pod)
}

// stray returns a stray pod, or nil.
func (o observation) stray() *corev1.Pod {
	for i := range o.Pods {
		if pod := &o.Pods[i]; isStray(o.record, pod, o.IsNodeGone(pod)) {
			return pod
		}
	}
	return nil
}

// reportingStray returns a stray pod that is over and whose node has yet to report its files, or nil.
func (o observation) reportingStray() *corev1.Pod {
	if pod := o.stray(); pod != nil && workflow.Judge(pod).IsOver() && o.awaitsReportOf(pod, o.IsNodeGone(pod)) {
		return pod
	}
	return nil
}

// isSettling reports whether it can be recorded what a stray pod has made. That waits for a pod that is recorded, which may make the same
// bucket or delete it.
func (o observation) isSettling() bool {
	pod := o.stray()
	return pod != nil && o.record.Status.Pod == nil && !o.reverting() && workflow.Judge(pod).IsOver() && o.reportingStray() == nil
}

// whileStray returns the decision about a bucket whose pods may be stray: nothing begins, and the record does not go, before all other pods
// have ended, and before it is known what they have made.
func whileStray(o observation, d rule.Decision) rule.Decision {
	running, reporting := o.unrecordedPod(), o.reportingStray()
	switch {
	case running != nil && afterAllPods(d.Step):
		d = waitForUnrecorded(o, running)
		d.Rule = "a pod that is not recorded has not ended"
	case reporting != nil && o.record.Status.Pod == nil && afterAllPods(d.Step):
		d = rule.OfPod(attempt.DecideReporting(o.now, reporting), pavv1.BucketCreated)
		d.Rule = "the result of a pod that is not recorded is not reported"
	}
	if reporting != nil && (d.After == 0 || d.After > attempt.ResultDelay) {
		d.After = attempt.ResultDelay
	}
	return d
}

// settle records what a stray pod has made, as if it were that of the last attempt, and lets the pod go. A bucket that is not created yet
// is reverted if it is certainly the claim's. One that was deleted is deleted again. Beside another bucket, there is no place for it.
func (r *Reconciler) settle(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	pod := o.stray()
	id := madeBy(o.record, pod.Annotations[pavv1.PlannedBucketAnnotation], pod)
	change := nothing
	switch {
	case o.pending():
		if change, err = r.toldOf(ctx, o, id, provesCreation(pod)); err != nil {
			return err
		}
	case o.at(pavv1.BucketDeletedStep) && o.record.Status.BucketID == id:
		change = func(status *pavv1.PavBucketStatus) { status.Step = "" }
	default:
		r.tellBeside(o, pod, id)
	}
	if err := r.patchStatus(ctx, o.record, change); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("recorded what a pod has made that was not recorded", observability.Pod, observability.Name(pod.Namespace, pod.Name), "bucketId", id)
	return attempt.Release(ctx, r.Runner, pod, true)
}

// tellBeside reports that a pod may have made another bucket than that of the record.
func (r *Reconciler) tellBeside(o observation, pod *corev1.Pod, id string) {
	text := fmt.Sprintf("pod %s/%s ran although it was not needed any more: bucket %q may exist beside %q, which is that of the claim; look for it", pod.Namespace, pod.Name, id, o.record.Status.BucketID)
	if due, _ := r.repeats.Due(o.record.Name, text, r.Now()); due {
		r.tell(o, true, protocol.BucketLeft, text)
	}
}

// lost reports that a pod may have made a bucket, and that the record which would have it does not exist any more: the administrator has to
// look for it.
func (r *Reconciler) lost(ctx context.Context, pod *corev1.Pod) error {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || pod.Labels[pavv1.WorkflowLabel] != pavv1.WorkflowBucketCreation {
		return nil
	}
	what := "a bucket"
	if id := madeBy(&pavv1.PavBucket{}, pod.Annotations[pavv1.PlannedBucketAnnotation], pod); id != "" {
		what = fmt.Sprintf("bucket %q", id)
	}
	text := fmt.Sprintf("pod %s/%s ran for PavBucket %q of the claim with the UID %s, which does not exist any more: %s may exist; look for it in the store",
		pod.Namespace, pod.Name, owner.Name, protocol.ClaimOfRecord(owner.Name), what)
	if due, _ := r.repeats.Due(owner.Name, text, r.Now()); !due {
		return nil
	}
	ctrl.LoggerFrom(ctx).Info("a bucket may exist that no record has", observability.Pod, observability.Name(pod.Namespace, pod.Name))
	provisioner, err := reconcile.Optional(ctx, r.Client, client.ObjectKey{Name: pod.Labels[pavv1.ProvisionerLabel]}, &pavv1.PavProvisioner{})
	if err != nil || provisioner == nil {
		return err
	}
	r.Events.Event(provisioner, corev1.EventTypeWarning, protocol.BucketLeft, observability.Clip(text, observability.MaxNote))
	return nil
}
