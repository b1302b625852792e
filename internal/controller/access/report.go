package access

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
type change = func(*pavv1.PavBucketAccessStatus)

func nothing(*pavv1.PavBucketAccessStatus) {}

func refuse(format string, args ...any) error {
	return &podplan.Error{Err: fmt.Errorf(format, args...)}
}

// patchStatus writes a changed status, unless the record was written by another process meanwhile. After that, record is the object that
// was written.
func (r *Reconciler) patchStatus(ctx context.Context, record *pavv1.PavBucketAccess, change change) error {
	return r.patch(ctx, record, func(record *pavv1.PavBucketAccess) { change(&record.Status) })
}

// patch is patchStatus.
func (r *Reconciler) patch(ctx context.Context, record *pavv1.PavBucketAccess, change func(*pavv1.PavBucketAccess)) error {
	before := record.Status
	written, err := r.ledger.Patch(ctx, record, change)
	if err == nil && written {
		r.measure(ctx, record, &before)
	}
	return err
}

// measure logs what a write of the status has recorded: a failure.
func (r *Reconciler) measure(ctx context.Context, record *pavv1.PavBucketAccess, before *pavv1.PavBucketAccessStatus) {
	after := &record.Status
	failure := attempt.NewFailure(before.Failure, after.Failure)
	if failure == nil {
		failure = attempt.NewFailure(before.RevocationFailure, after.RevocationFailure)
	}
	if failure != nil {
		ctrl.LoggerFrom(ctx).Info("an attempt failed", observability.Workflow, failure.Workflow, observability.Pod, observability.Name(failure.PodNamespace, failure.PodName), observability.Reason, failure.Message)
	}
}

// patchRecord writes what changed of a record besides its status, unless someone else wrote it meanwhile.
func (r *Reconciler) patchRecord(ctx context.Context, before, after *pavv1.PavBucketAccess) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating PavBucketAccess %q: %w", before.Name, err)
	}
	r.expectations.Replace(before.Name, before.ResourceVersion, after.ResourceVersion)
	return nil
}

// setCondition sets a condition of a status to false.
func setCondition(record *pavv1.PavBucketAccess, status *pavv1.PavBucketAccessStatus, kind, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, ledger.False(record.Generation, kind, reason, message))
}

// wait reports what the access waits for, once for each cause.
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
	} else if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) {
		if status.Phase == "" {
			status.Phase, status.RecordUID = pavv1.AccessPending, o.record.UID
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
	reason := protocol.AccessWaiting
	switch {
	case d.Condition == pavv1.AccessRevokedCondition && d.Warning:
		reason = protocol.AccessRevocationFailed
	case d.Condition == pavv1.AccessRevokedCondition:
		reason = protocol.AccessRevocationWaiting
	case d.Warning:
		reason = protocol.AccessGrantFailed
	case d.Reason == "BucketNotReady":
		return // the bucket's own events say why
	}
	r.tell(o, d.Warning, reason, d.Message)
}

// recordFailure records that the pod has failed. The account of a grant pod that may have made one is to be revoked.
func (r *Reconciler) recordFailure(ctx context.Context, o observation, _ rule.Decision) error {
	kind := workflows[o.record.Status.Step]
	failure := o.attempt().Failure(kind)
	if kind == pavv1.WorkflowRevocation {
		return r.failRevocation(ctx, o, failure, nothing)
	}
	if failure.Reason == pavv1.FailureInfeasible {
		return r.failGrant(ctx, o, failure, endAttempt)
	}
	return r.failMade(ctx, o, failure)
}

// recordLateMessage adds the text in /pav/error to the recorded failure.
func (r *Reconciler) recordLateMessage(ctx context.Context, o observation, _ rule.Decision) error {
	late := o.lateFailure()
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) {
		failure := &status.Failure
		if late.Workflow == pavv1.WorkflowRevocation {
			failure = &status.RevocationFailure
		}
		for i := range status.Conditions {
			c := &status.Conditions[i]
			c.Message = observability.Clip(strings.Replace(c.Message, (*failure).Message, late.Message, 1), observability.MaxCondition)
		}
		*failure = late
	})
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
	if errors.Is(err, errNameTaken) {
		failure.Reason = protocol.SecretNameTaken
	}
	if kind == pavv1.WorkflowRevocation {
		return r.failRevocation(ctx, o, failure, begin)
	}
	return r.failGrant(ctx, o, failure, func(status *pavv1.PavBucketAccessStatus) {
		begin(status)
		endAttempt(status)
	})
}

// failGrant records that an attempt to grant access has failed; change says what follows. Clients keep the access that they have.
func (r *Reconciler) failGrant(ctx context.Context, o observation, failure *pavv1.WorkflowFailure, change change) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	condition := pavv1.AccessGranted
	if o.record.Status.Current != nil {
		condition = pavv1.AccessRotated
	}
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) {
		change(status)
		workflow.Date(failure, int(status.Attempt), r.Now())
		status.Failure = failure
		setCondition(o.record, status, condition, reasonOf(failure), failure.Message)
	}); err != nil {
		return err
	}
	r.leave(o.record.Name)
	reason := protocol.AccessGrantFailed
	if failure.Reason == protocol.SecretNameTaken {
		reason = protocol.SecretNameTaken
	}
	text := fmt.Sprintf("PavProvisioner %q: %s", o.record.Spec.Provisioner, failure.Message)
	// A request that is rejected without a pod is rejected with the same text each time.
	if due, _ := r.repeats.Due(o.record.Name, text, r.Now()); due || failure.PodName != "" {
		attempts := int(o.record.Status.Attempt)
		r.tell(o, true, reason, fmt.Sprintf("%s; attempt %d follows in %s", text, attempts+1, workflow.DelayAfter(failure, attempts)))
	}
	return nil
}

func reasonOf(failure *pavv1.WorkflowFailure) string {
	switch {
	case failure.Reason == protocol.SecretNameTaken:
		return protocol.SecretNameTaken
	case failure.PodName == "":
		return "Refused"
	default:
		return "GrantFailed"
	}
}

// failRevocation records that an attempt to revoke an account, which begin may have begun, has failed.
func (r *Reconciler) failRevocation(ctx context.Context, o observation, failure *pavv1.WorkflowFailure, begin change) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	var text string
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) {
		begin(status)
		workflow.Date(failure, int(status.RevocationAttempt), r.Now())
		status.RevocationFailure, status.Step, status.Pod = failure, "", nil
		text = fmt.Sprintf("PavProvisioner %q: attempt %d to revoke an account failed: %s; the next follows in %s",
			o.record.Spec.Provisioner, status.RevocationAttempt, failure.Message, workflow.DelayAfter(failure, int(status.RevocationAttempt)).Round(time.Second))
		setCondition(o.record, status, pavv1.AccessRevokedCondition, "RevocationFailed", text)
	}); err != nil {
		return err
	}
	r.leave(o.record.Name)
	r.tell(o, true, protocol.AccessRevocationFailed, text)
	return nil
}

// tell records an event where people may look: on who asked for access, and on the record.
func (r *Reconciler) tell(o observation, warning bool, reason, message string) {
	eventType := corev1.EventTypeNormal
	if warning {
		eventType = corev1.EventTypeWarning
	}
	message = observability.Clip(message, observability.MaxNote)
	r.Events.Event(o.record, eventType, reason, message)
	if requester := protocol.RequesterOfAccess(o.record); requester != nil {
		r.Events.Event(requester, eventType, reason, message)
	}
}

// tellLookup reports to the administrator that a definition looks up claims of another namespace: a tenant may have chosen the namespace.
func (r *Reconciler) tellLookup(record *pavv1.PavBucketAccess, name, namespace string, allowed bool) {
	message := template.ForeignLookup(record.Spec.Provisioner, name, namespace, record.Spec.Requester.Namespace, allowed)
	if due, _ := r.repeats.Due(record.Name, message, r.Now()); !due {
		return
	}
	eventType := corev1.EventTypeNormal
	if !allowed {
		eventType = corev1.EventTypeWarning
	}
	r.Events.Event(record, eventType, protocol.ForeignClaim, observability.Clip(message, observability.MaxNote))
}
