package bucket

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// errTaken is wrapped by errors about buckets that other records have.
var errTaken = errors.New("already another claim's")

// begin begins an attempt: with the validation pod or, if there is none, with creation.
func (r *Reconciler) begin(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	begin := r.beginning(o)
	valid, err := r.validate(ctx, o)
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowBucketValidation, begin, err)
	}
	record := func(status *pavv1.PavBucketStatus) {
		begin(status)
		status.Protocols = valid.Protocols
	}
	if valid.Pod != nil {
		return r.intend(ctx, o, pavv1.BucketValidating, valid.Pod, record)
	}
	return r.intendCreation(ctx, o, record)
}

// validate checks the request against the definition, and against the requests of others.
func (r *Reconciler) validate(ctx context.Context, o observation) (*podplan.ValidBucket, error) {
	request, err := r.requestOf(ctx, o)
	if err != nil {
		return nil, err
	}
	valid, err := request.Validate(ctx)
	if err != nil || valid.Ceilings.Buckets == nil {
		return valid, err
	}
	records, err := r.liveRecords(ctx, o.record.Spec.Provisioner)
	if err != nil {
		return nil, err
	}
	return valid, checkCount(records, o.record, *valid.Ceilings.Buckets)
}

// checkCount returns a refusal if the claims of a record's namespace have as many buckets as they may have.
func checkCount(records []pavv1.PavBucket, record *pavv1.PavBucket, most int64) error {
	n, left := countOf(records, record)
	if int64(n) < most {
		return nil
	}
	text := ""
	if len(left) > 0 {
		text = fmt.Sprintf("; of these, %d may exist although their claims are gone, such as that of PavBucket %q: look for them in the store, and delete the PavBuckets", len(left), left[0])
	}
	return refuse("namespace %q has %d buckets of PavProvisioner %q already, and may have %d%s", record.Spec.ClaimRef.Namespace, n, record.Spec.Provisioner, most, text)
}

// countOf returns how many buckets the claims of a record's namespace have that were requested before it, or have begun; and the names of
// the records whose claims are gone. A bucket that belongs to the administrator does not count, but one does that may exist: else a tenant
// could leave any number of them, with names that make their creation fail.
func countOf(records []pavv1.PavBucket, record *pavv1.PavBucket) (count int, left []string) {
	for i := range records {
		other := &records[i]
		retained := other.Status.Phase == pavv1.BucketRetained
		if other.Name == record.Name || other.Spec.ClaimRef.Namespace != record.Spec.ClaimRef.Namespace || retained && !other.Status.MayExist || !holdsBefore(other, record) {
			continue
		}
		count++
		if retained {
			left = append(left, other.Name)
		}
	}
	return count, left
}

// create goes on with creation after the validation pod has succeeded.
func (r *Reconciler) create(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if configuration(o.record) != o.record.Status.Configuring {
		// What is validated is what is created.
		return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) { status.Step, status.Pod = "", nil })
	}
	return r.intendCreation(ctx, o, func(status *pavv1.PavBucketStatus) { status.Pod = nil })
}

// intendCreation records the creation pod, or the bucket if none is to run.
func (r *Reconciler) intendCreation(ctx context.Context, o observation, change change) error {
	request, err := r.requestOf(ctx, o)
	if err != nil {
		return err
	}
	plan, err := request.Create(ctx)
	if err == nil {
		err = r.checkFree(ctx, o, plan.BucketID)
	}
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowBucketCreation, change, err)
	}
	if plan.Pod != nil {
		return r.intend(ctx, o, pavv1.BucketCreating, plan.Pod, func(status *pavv1.PavBucketStatus) {
			change(status)
			status.PlannedBucketID = plan.BucketID
		})
	}
	outcome, err := podplan.BucketOutcomeOf(o.record, plan, nil)
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowBucketCreation, change, err)
	}
	r.tellMayExist(o, outcome.BucketID)
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
		change(status)
		setReady(o.record, status, outcome)
	})
}

// checkFree returns a podplan.Error, and errTaken, if another record has the bucket that is to be made.
func (r *Reconciler) checkFree(ctx context.Context, o observation, id string) error {
	if o.isExisting() || id == "" {
		return nil
	}
	holder, err := r.liveHolder(ctx, o.record, reconcile.BucketStorage(o.record.Spec.Provisioner, o.record.Spec.Store, id))
	if err == nil && holder != "" {
		err = refuse("bucket %q is %w: that of PavBucket %q", id, errTaken, holder)
	}
	return err
}

// beginning records a new attempt.
func (r *Reconciler) beginning(o observation) change {
	return func(status *pavv1.PavBucketStatus) {
		if status.Phase == "" {
			status.Phase, status.RecordUID = pavv1.BucketPending, o.record.UID
		}
		status.Attempt++
		status.LastHandledRetry = o.record.Annotations[pavv1.RetryAnnotation]
		status.ProvisionerGeneration = o.provisioner.Generation
		status.Configuring = configuration(o.record)
		status.PlannedBucketID = ""
	}
}

// recordCreated records the bucket that the creation pod has made. If what it tells is invalid, the creation is reverted; if another
// record has the bucket, it is not, as that would delete the other's data.
func (r *Reconciler) recordCreated(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	pod := o.pod()
	outcome, err := r.outcome(ctx, o)
	if podplan.IsRefusal(err) {
		told, toldErr := r.told(ctx, o)
		if toldErr != nil {
			return toldErr
		}
		return r.failCreation(ctx, o, outputInvalid(o, err), told)
	}
	if err != nil {
		return err
	}
	if err := r.checkFree(ctx, o, outcome.BucketID); errors.Is(err, errTaken) {
		failure := outputInvalid(o, err)
		failure.Reason = pavv1.FailureHandleInUse
		return r.failCreation(ctx, o, failure, nothing)
	} else if err != nil {
		return err
	}
	r.tellMayExist(o, outcome.BucketID) // before the record loses it: better twice than never
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) { setReady(o.record, status, outcome) }); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("created a bucket", "pod", pod.Name)
	return nil
}

// outcome returns what the creation pod has made.
func (r *Reconciler) outcome(ctx context.Context, o observation) (podplan.BucketOutcome, error) {
	request, err := r.requestOf(ctx, o)
	if err != nil {
		return podplan.BucketOutcome{}, err
	}
	plan, err := request.Create(ctx)
	if err != nil {
		return podplan.BucketOutcome{}, err
	}
	result, err := workflow.ResultOf(o.pod())
	if err != nil {
		return podplan.BucketOutcome{}, &podplan.Error{Err: err}
	}
	if result == nil {
		return podplan.BucketOutcome{}, refuse("the node of the creation pod did not report what the pod left in /pav")
	}
	return podplan.BucketOutcomeOf(o.record, plan, result)
}

func outputInvalid(o observation, err error) *pavv1.WorkflowFailure {
	failure := workflow.FailureWithoutPod(pavv1.WorkflowBucketCreation, err)
	failure.Reason, failure.PodNamespace, failure.PodName = pavv1.FailureOutputInvalid, o.pod().Namespace, o.pod().Name
	return failure
}

// setReady records that access to the bucket can be granted.
func setReady(record *pavv1.PavBucket, status *pavv1.PavBucketStatus, outcome podplan.BucketOutcome) {
	status.Phase, status.Step, status.Pod, status.Failure, status.PlannedBucketID = pavv1.BucketReady, "", nil, nil, ""
	status.MayExist, status.MayExistID = false, ""
	status.Configured, status.Attempt = status.Configuring, 0
	status.BucketID, status.Created, status.Info, status.ExtraInfo = outcome.BucketID, outcome.Created, outcome.Info, outcome.ExtraInfo
	meta.RemoveStatusCondition(&status.Conditions, pavv1.BucketCreated) // so that the new condition has the time of this write
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: pavv1.BucketCreated, Status: metav1.ConditionTrue,
		Reason: "Created", Message: "access to the bucket can be granted", ObservedGeneration: record.Generation})
}

// update records the update pod.
func (r *Reconciler) update(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	begin := r.updating(o)
	request, err := r.requestOf(ctx, o)
	if err != nil {
		return err
	}
	// A claim may have been given what the definition does not allow.
	_, err = request.Validate(ctx)
	var pod map[string]any
	if err == nil {
		pod, err = request.Update(ctx)
	}
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowBucketUpdate, begin, err)
	}
	if pod == nil {
		return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
			begin(status)
			setUpdated(o.record, status)
		})
	}
	return r.intend(ctx, o, pavv1.BucketUpdating, pod, begin)
}

func (r *Reconciler) updating(o observation) change {
	return func(status *pavv1.PavBucketStatus) {
		status.Attempt++
		status.LastHandledRetry = o.record.Annotations[pavv1.RetryAnnotation]
		status.ProvisionerGeneration = o.provisioner.Generation
		status.Configuring = configuration(o.record)
	}
}

// recordUpdated records that the bucket is as the claim asked for when the update pod was recorded. What has changed since is another
// update.
func (r *Reconciler) recordUpdated(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) { setUpdated(o.record, status) })
}

func setUpdated(record *pavv1.PavBucket, status *pavv1.PavBucketStatus) {
	status.Step, status.Pod, status.Failure, status.Configured, status.Attempt = "", nil, nil, status.Configuring, 0
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: pavv1.BucketUpdated, Status: metav1.ConditionTrue,
		Reason: "Updated", Message: "the bucket is as the claim asks for", ObservedGeneration: record.Generation})
}

func refuse(format string, args ...any) error {
	return &podplan.Error{Err: fmt.Errorf(format, args...)}
}
