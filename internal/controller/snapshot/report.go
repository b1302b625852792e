package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/ledger"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// change changes a status in the same write that records the next step.
type change = func(*pavv1.PavSnapshotStatus)

func nothing(*pavv1.PavSnapshotStatus) {}

// patchStatus writes a changed status, unless the record was written by another process meanwhile. After that, record is the object that
// was written.
func (r *Reconciler) patchStatus(ctx context.Context, record *pavv1.PavSnapshot, change change) error {
	return r.patchRecorded(ctx, record, func(record *pavv1.PavSnapshot) { change(&record.Status) })
}

// patchRecorded is patchStatus for a change that is given the record, as those of podrun are.
func (r *Reconciler) patchRecorded(ctx context.Context, record *pavv1.PavSnapshot, change func(*pavv1.PavSnapshot)) error {
	before := record.Status
	written, err := r.ledger.Patch(ctx, record, change)
	if err == nil && written {
		r.measure(ctx, record, &before)
	}
	return err
}

// setCondition sets a condition of a status to false.
func setCondition(record *pavv1.PavSnapshot, status *pavv1.PavSnapshotStatus, kind, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, ledger.False(record.Generation, kind, reason, message))
}

// wait reports what the snapshot waits for, once for each cause.
func (r *Reconciler) wait(ctx context.Context, o observation, d rule.Decision) error {
	if d.Doubted && !ledger.Has(o.record, d) {
		if err := r.confirm(ctx, o, d.Step); err != nil {
			return err
		}
	}
	if ledger.Has(o.record, d) {
		if !d.Repeat {
			return nil
		}
	} else if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) {
		if status.Phase == "" {
			status.Phase, status.RecordUID = pavv1.SnapshotPending, o.record.UID
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
	eventType, reason := corev1.EventTypeNormal, protocol.SnapshotCreationWaiting
	switch {
	case d.Condition == pavv1.SnapshotDeleted && d.Warning:
		eventType, reason = corev1.EventTypeWarning, protocol.SnapshotDeleteError
	case d.Condition == pavv1.SnapshotDeleted:
		reason = protocol.SnapshotDeletionWaiting
	case d.Warning:
		eventType, reason = corev1.EventTypeWarning, protocol.SnapshotCreationFailed
	}
	r.tell(o, eventType, reason, d.Message)
}

// recordFailure records that the pod has failed. The creation of a snapshot that is not cut is reverted; what is cut stays.
func (r *Reconciler) recordFailure(ctx context.Context, o observation, _ rule.Decision) error {
	kind := workflows[o.record.Status.Step]
	failure := o.attempt().Failure(kind)
	if kind == pavv1.WorkflowSnapshotDeletion {
		return r.failDeletion(ctx, o, failure, nothing)
	}
	return r.failCreation(ctx, o, failure, nothing, o.pending() && o.mayHaveCreated(failure))
}

// mayHaveCreated reports whether a pod that failed may have created something.
func (o observation) mayHaveCreated(failure *pavv1.WorkflowFailure) bool {
	pod := o.pod()
	return failure.Reason != pavv1.FailureInfeasible && (pod == nil || workflow.Started(pod) || pod.Annotations[pavv1.GivenAnnotation] != "")
}

// recordLateMessage adds the text in /pav/error to the recorded failure.
func (r *Reconciler) recordLateMessage(ctx context.Context, o observation, _ rule.Decision) error {
	late := o.lateFailure()
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) {
		failure := failureOf(status, late.Workflow)
		for i := range status.Conditions {
			c := &status.Conditions[i]
			c.Message = observability.Clip(strings.Replace(c.Message, (*failure).Message, late.Message, 1), observability.MaxCondition)
		}
		*failure = late
	})
}

// failureOf returns where a status has the failure of a workflow.
func failureOf(status *pavv1.PavSnapshotStatus, kind string) **pavv1.WorkflowFailure {
	if kind == pavv1.WorkflowSnapshotDeletion {
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
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	failure := workflow.FailureWithoutPod(kind, err)
	if errors.Is(err, errInUse) {
		failure.Reason = pavv1.FailureHandleInUse
	}
	if kind == pavv1.WorkflowSnapshotDeletion {
		return r.failDeletion(ctx, o, failure, begin)
	}
	return r.failCreation(ctx, o, failure, begin, false)
}

// failCreation records that an attempt to create the snapshot has failed, and whether it has to be reverted.
func (r *Reconciler) failCreation(ctx context.Context, o observation, failure *pavv1.WorkflowFailure, begin change, revert bool) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	told := nothing
	if revert {
		var err error
		if told, err = r.told(ctx, o); err != nil {
			return err
		}
	}
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) {
		begin(status)
		workflow.Date(failure, int(status.Attempt), r.Now())
		status.Failure, status.Pod, status.Step, status.SyncRequestTime = failure, nil, "", nil
		told(status)
		if !revert {
			status.PlannedHandle = ""
		}
		setCondition(o.record, status, pavv1.SnapshotCreated, reasonOf(failure), failure.Message)
	}); err != nil {
		return err
	}
	r.slots.Release(o.record.Name)
	r.handles.Release(o.record.Name)
	next := fmt.Sprintf("attempt %d follows in %s", o.record.Status.Attempt+1, workflow.DelayAfter(failure, int(o.record.Status.Attempt)))
	if o.record.Status.Step == pavv1.SnapshotReverting {
		next = "the creation is reverted first"
	}
	text := fmt.Sprintf("PavProvisioner %q: %s", o.record.Spec.Provisioner, failure.Message)
	// A request that is rejected without a pod is rejected with the same text each time.
	if due, _ := r.repeats.Due(o.record.Name, text, r.Now()); due || failure.PodName != "" {
		r.tell(o, corev1.EventTypeWarning, protocol.SnapshotCreationFailed, text+"; "+next)
	}
	return nil
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
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) {
		begin(status)
		workflow.Date(failure, int(status.DeletionAttempt), r.Now())
		status.DeletionFailure, status.Pod = failure, nil
		text = fmt.Sprintf("PavProvisioner %q: deletion attempt %d failed: %s; the next follows in %s",
			o.record.Spec.Provisioner, status.DeletionAttempt, failure.Message, workflow.DelayAfter(failure, int(status.DeletionAttempt)).Round(time.Second))
		setCondition(o.record, status, pavv1.SnapshotDeleted, "DeletionFailed", text)
	}); err != nil {
		return err
	}
	r.slots.Release(o.record.Name)
	r.tell(o, corev1.EventTypeWarning, protocol.SnapshotDeleteError, text)
	return nil
}

// tell records an event on the objects where people may look: VolumeSnapshot, VolumeSnapshotContent and record.
func (r *Reconciler) tell(o observation, eventType, reason, message string) {
	message = observability.Clip(message, observability.MaxNote)
	r.Events.Event(o.record, eventType, reason, message)
	if o.content != nil {
		r.tellContent(o.content, eventType, reason, message)
	}
}

// tellLeft reports that a snapshot may be left whose handle is not known. An event of the PavProvisioner says so, too, as the other objects
// may be gone by then. What follows may be repeated while the cache is behind, so the event is limited.
func (r *Reconciler) tellLeft(o observation) {
	ref := o.record.Status.Pod
	text := observability.Clip(fmt.Sprintf("PavProvisioner %q: it is not known which handle pod %s/%s chose for PavSnapshot %q, so that only what has the default handle is deleted; "+
		"what the pod made may be left: look for it, and give the definition a snapshotCreation.handle, which makes it known in advance",
		o.record.Spec.Provisioner, ref.Namespace, ref.Name, o.record.Name), observability.MaxNote)
	if due, _ := r.left.Due(o.record.Name, text, r.Now()); !due {
		return
	}
	if o.provisioner != nil {
		r.Events.Event(o.provisioner, corev1.EventTypeWarning, protocol.SnapshotDeleteError, text)
	}
	r.tell(o, corev1.EventTypeWarning, protocol.SnapshotDeleteError, text)
}

func (r *Reconciler) tellContent(content *snapshotv1.VolumeSnapshotContent, eventType, reason, message string) {
	message = observability.Clip(message, observability.MaxNote)
	r.Events.Event(content, eventType, reason, message)
	ref := content.Spec.VolumeSnapshotRef
	if ref.UID == "" {
		return
	}
	r.Events.Event(&snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}}, eventType, reason, message)
}

// tellLookup reports to the administrator that a definition looks up claims of another namespace: a tenant may have chosen the namespace.
func (r *Reconciler) tellLookup(record *pavv1.PavSnapshot, name, namespace string, allowed bool) {
	message := template.ForeignLookup(record.Spec.Provisioner, name, namespace, record.Spec.SnapshotRef.Namespace, allowed)
	if due, _ := r.repeats.Due(record.Name, message, r.Now()); !due {
		return
	}
	eventType := corev1.EventTypeNormal
	if !allowed {
		eventType = corev1.EventTypeWarning
	}
	r.Events.Event(record, eventType, protocol.ForeignClaim, observability.Clip(message, observability.MaxNote))
}
