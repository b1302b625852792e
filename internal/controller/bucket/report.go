package bucket

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/ledger"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// change changes a status in the same write that records the next step.
type change = func(*pavv1.PavBucketStatus)

func nothing(*pavv1.PavBucketStatus) {}

// patchStatus writes a changed status, unless the record was written by another process meanwhile. After that, record is the object that
// was written.
func (r *Reconciler) patchStatus(ctx context.Context, record *pavv1.PavBucket, change change) error {
	return r.patch(ctx, record, func(record *pavv1.PavBucket) { change(&record.Status) })
}

// patch is patchStatus.
func (r *Reconciler) patch(ctx context.Context, record *pavv1.PavBucket, change func(*pavv1.PavBucket)) error {
	before := record.Status
	written, err := r.ledger.Patch(ctx, record, change)
	if err == nil && written {
		r.measure(ctx, record, &before)
	}
	return err
}

// measure logs what a write of the status has recorded: a failure.
func (r *Reconciler) measure(ctx context.Context, record *pavv1.PavBucket, before *pavv1.PavBucketStatus) {
	after := &record.Status
	failure := attempt.NewFailure(before.Failure, after.Failure)
	if failure == nil {
		failure = attempt.NewFailure(before.DeletionFailure, after.DeletionFailure)
	}
	if failure != nil {
		ctrl.LoggerFrom(ctx).Info("an attempt failed", observability.Workflow, failure.Workflow, observability.Pod, observability.Name(failure.PodNamespace, failure.PodName), observability.Reason, failure.Message)
	}
}

// patchRecord writes what changed of a record besides its status, unless someone else wrote it meanwhile.
func (r *Reconciler) patchRecord(ctx context.Context, before, after *pavv1.PavBucket) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating PavBucket %q: %w", before.Name, err)
	}
	r.expectations.Replace(before.Name, before.ResourceVersion, after.ResourceVersion)
	return nil
}

// setCondition sets a condition of a status to false.
func setCondition(record *pavv1.PavBucket, status *pavv1.PavBucketStatus, kind, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, ledger.False(record.Generation, kind, reason, message))
}

// wait reports what the bucket waits for, once for each cause.
func (r *Reconciler) wait(ctx context.Context, o observation, d rule.Decision) error {
	if d.Doubted && !ledger.Has(o.record, d) {
		if _, err := r.confirmed(ctx, o, d.Step); err != nil {
			return err
		}
	}
	if ledger.Has(o.record, d) {
		if !d.Repeat {
			return nil
		}
	} else if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
		if status.Phase == "" {
			status.Phase, status.RecordUID = pavv1.BucketPending, o.record.UID
		}
		if pavv1.IsStoppedByRetry(d.Reason) && pavv1.StoppedByRetry(status.Conditions, d.Condition) == nil {
			status.LastHandledRetry = o.record.Annotations[pavv1.RetryAnnotation] // a later request stops the pod
		}
		setCondition(o.record, status, d.Condition, d.Reason, d.Message)
	}); err != nil {
		return err
	}
	r.announce(o, d)
	return nil
}

// announce records an event with the message of the decision.
func (r *Reconciler) announce(o observation, d rule.Decision) {
	reason := protocol.BucketWaiting
	switch {
	case d.Condition == pavv1.BucketDeleted && d.Warning:
		reason = protocol.BucketDeletionFailed
	case d.Condition == pavv1.BucketDeleted:
		reason = protocol.BucketDeletionWaiting
	case d.Warning:
		reason = protocol.BucketCreationFailed
	}
	r.tell(o, d.Warning, reason, d.Message)
}

// recordFailure records that the pod has failed. What a creation pod may have made is reverted if it is certainly the claim's.
func (r *Reconciler) recordFailure(ctx context.Context, o observation, _ rule.Decision) error {
	kind := workflows[o.record.Status.Step]
	failure := o.attempt().Failure(kind)
	switch kind {
	case pavv1.WorkflowBucketDeletion:
		return r.failDeletion(ctx, o, failure, nothing)
	case pavv1.WorkflowBucketUpdate:
		return r.failUpdate(ctx, o, failure, nothing)
	}
	told := nothing
	if failure.Reason != pavv1.FailureInfeasible {
		var err error
		if told, err = r.told(ctx, o); err != nil {
			return err
		}
	}
	return r.failCreation(ctx, o, failure, told)
}

// recordLateMessage adds the text in /pav/error to the recorded failure.
func (r *Reconciler) recordLateMessage(ctx context.Context, o observation, _ rule.Decision) error {
	late := o.lateFailure()
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
		failure := failureOf(status, late.Workflow)
		for i := range status.Conditions {
			c := &status.Conditions[i]
			c.Message = observability.Clip(strings.Replace(c.Message, (*failure).Message, late.Message, 1), observability.MaxCondition)
		}
		*failure = late
	})
}

// failureOf returns where a status has the failure of a workflow.
func failureOf(status *pavv1.PavBucketStatus, kind string) **pavv1.WorkflowFailure {
	if kind == pavv1.WorkflowBucketDeletion {
		return &status.DeletionFailure
	}
	return &status.Failure
}

// refuse records that an attempt, which begin may have begun, has failed without a pod. It returns errors that are not about the request.
func (r *Reconciler) refuse(ctx context.Context, o observation, kind string, begin change, err error) error {
	if !podplan.IsRefusal(err) {
		return err
	}
	// An earlier pass may have created the pod that is rejected now, without seeing or recording that.
	if err := r.runs.CheckNotCreated(ctx, o.record, o.Pods); err != nil {
		return err
	}
	failure := workflow.FailureWithoutPod(kind, err)
	if errors.Is(err, errTaken) {
		failure.Reason = pavv1.FailureHandleInUse
	}
	switch kind {
	case pavv1.WorkflowBucketDeletion:
		return r.failDeletion(ctx, o, failure, begin)
	case pavv1.WorkflowBucketUpdate:
		return r.failUpdate(ctx, o, failure, begin)
	default:
		return r.failCreation(ctx, o, failure, func(status *pavv1.PavBucketStatus) {
			begin(status)
			status.Step, status.Pod, status.PlannedBucketID = "", nil, ""
		})
	}
}

// failCreation records that an attempt to create the bucket has failed; change says what follows.
func (r *Reconciler) failCreation(ctx context.Context, o observation, failure *pavv1.WorkflowFailure, change change) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
		status.Step, status.Pod = "", nil
		change(status)
		workflow.Date(failure, int(status.Attempt), r.Now())
		status.Failure = failure
		setCondition(o.record, status, pavv1.BucketCreated, reasonOf(failure), failure.Message)
	}); err != nil {
		return err
	}
	next := fmt.Sprintf("attempt %d follows in %s", o.record.Status.Attempt+1, workflow.DelayAfter(failure, int(o.record.Status.Attempt)))
	if o.reverting() {
		next = "the creation is reverted first"
	}
	r.reportFailure(o, protocol.BucketCreationFailed, failure, next)
	return nil
}

// failUpdate records that an attempt to update the bucket has failed. It stays as it was before, as far as the pod did nothing.
func (r *Reconciler) failUpdate(ctx context.Context, o observation, failure *pavv1.WorkflowFailure, begin change) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
		begin(status)
		workflow.Date(failure, int(status.Attempt), r.Now())
		status.Failure, status.Step, status.Pod = failure, "", nil
		setCondition(o.record, status, pavv1.BucketUpdated, "UpdateFailed", failure.Message)
	}); err != nil {
		return err
	}
	r.reportFailure(o, protocol.BucketUpdateFailed, failure, fmt.Sprintf("the next attempt follows in %s", workflow.DelayAfter(failure, int(o.record.Status.Attempt))))
	return nil
}

// reportFailure records an event about a failure, and lets others have slot and turn.
func (r *Reconciler) reportFailure(o observation, reason string, failure *pavv1.WorkflowFailure, next string) {
	r.release(o.record.Name)
	text := fmt.Sprintf("PavProvisioner %q: %s", o.record.Spec.Provisioner, failure.Message)
	// A request that is rejected without a pod is rejected with the same text each time.
	if due, _ := r.repeats.Due(o.record.Name, text, r.Now()); due || failure.PodName != "" {
		r.tell(o, true, reason, text+"; "+next)
	}
}

func reasonOf(failure *pavv1.WorkflowFailure) string {
	if failure.PodName == "" {
		return "Refused"
	}
	return "CreationFailed"
}

// failDeletion records that an attempt to delete or to revert, which begin may have begun, has failed.
func (r *Reconciler) failDeletion(ctx context.Context, o observation, failure *pavv1.WorkflowFailure, begin change) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	var text string
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketStatus) {
		begin(status)
		workflow.Date(failure, int(status.DeletionAttempt), r.Now())
		status.DeletionFailure, status.Pod = failure, nil
		text = fmt.Sprintf("PavProvisioner %q: deletion attempt %d failed: %s; the next follows in %s",
			o.record.Spec.Provisioner, status.DeletionAttempt, failure.Message, workflow.DelayAfter(failure, int(status.DeletionAttempt)).Round(time.Second))
		setCondition(o.record, status, pavv1.BucketDeleted, "DeletionFailed", text)
	}); err != nil {
		return err
	}
	r.release(o.record.Name)
	r.tell(o, true, protocol.BucketDeletionFailed, text)
	return nil
}

// tell records an event where people may look: on the claim, whichever kind it has, and on the record.
func (r *Reconciler) tell(o observation, warning bool, reason, message string) {
	eventType := corev1.EventTypeNormal
	if warning {
		eventType = corev1.EventTypeWarning
	}
	message = observability.Clip(message, observability.MaxNote)
	r.Events.Event(o.record, eventType, reason, message)
	if claim := protocol.ClaimOfBucket(o.record); claim != nil {
		r.Events.Event(claim, eventType, reason, message)
	}
}

// tellLeft reports that a pod may have made something in a bucket that another record has.
func (r *Reconciler) tellLeft(o observation, id, holder string) {
	text := fmt.Sprintf("PavProvisioner %q: a pod for PavBucket %q named bucket %q, which is PavBucket %q's: it is not deleted; look for what the pod has left there",
		o.record.Spec.Provisioner, o.record.Name, id, holder)
	if due, _ := r.repeats.Due(o.record.Name, text, r.Now()); due {
		r.tell(o, true, protocol.BucketDeletionFailed, text)
	}
}

// tellMayExist reports a bucket that an earlier attempt may have made, and that the record is about to forget for another one.
func (r *Reconciler) tellMayExist(o observation, id string) {
	if status := &o.record.Status; status.MayExist && status.MayExistID != id {
		text := mayExistText(o.record, status.MayExistID)
		if due, _ := r.repeats.Due(o.record.Name, text, r.Now()); due {
			r.tell(o, true, protocol.BucketLeft, text)
		}
	}
}

// tellLookup reports to the administrator that a definition looks up claims of another namespace: a tenant may have chosen the namespace.
func (r *Reconciler) tellLookup(record *pavv1.PavBucket, name, namespace string, allowed bool) {
	message := template.ForeignLookup(record.Spec.Provisioner, name, namespace, record.Spec.ClaimRef.Namespace, allowed)
	if due, _ := r.repeats.Due(record.Name, message, r.Now()); !due {
		return
	}
	eventType := corev1.EventTypeNormal
	if !allowed {
		eventType = corev1.EventTypeWarning
	}
	r.Events.Event(record, eventType, protocol.ForeignClaim, observability.Clip(message, observability.MaxNote))
}
