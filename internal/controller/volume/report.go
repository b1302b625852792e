package volume

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/ledger"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// wait reports what the volume waits for, once for each cause.
func (r *Reconciler) wait(ctx context.Context, o observation, d decision) error {
	if d.Doubted && (d.Condition == "" || !ledger.Has(o.volume, d)) {
		if live, err := r.confirmed(ctx, o, d); err != nil {
			return err
		} else if decide(live).Message != d.Message {
			return reconcile.ErrStale
		}
	}
	if d.Condition == "" {
		r.tellClaimOnce(o.volume, d.Message)
		return nil
	}
	if ledger.Has(o.volume, d) {
		if !d.Repeat {
			return nil
		}
	} else if err := r.patchCondition(ctx, o.volume, d); err != nil {
		return err
	}
	r.announce(o, d)
	return nil
}

// announce records an event with the message of the decision.
func (r *Reconciler) announce(o observation, d decision) {
	eventType := corev1.EventTypeNormal
	if d.Warning {
		eventType = corev1.EventTypeWarning
	}
	if reasons, is := reasonsOfChanges[d.Condition]; is {
		reason := reasons.begins
		if d.Warning {
			reason = reasons.fails
		}
		r.tellUser(o, eventType, reason, d.Message)
		return
	}
	if d.Condition == pavv1.VolumeProvisioned {
		r.tellClaim(o.volume, eventType, protocol.Provisioning, d.Message)
		if d.Warning && o.claim == claimGone {
			r.Events.Event(o.volume, eventType, protocol.Provisioning, observability.Clip(d.Message, observability.MaxNote))
		}
		return
	}
	reason := protocol.VolumeDeletionWaiting
	if d.Warning {
		reason = protocol.VolumeFailedDelete
	}
	r.reportDeletion(o, eventType, reason, d.Message)
}

// recordFailure records that the pod has failed.
func (r *Reconciler) recordFailure(ctx context.Context, o observation, _ decision) error {
	kind := workflows[o.volume.Status.Step]
	failure := o.attempt().Failure(kind)
	switch kind {
	case pavv1.WorkflowDeletion:
		return r.failDeletion(ctx, o, failure, nothing)
	case pavv1.WorkflowExpansion, pavv1.WorkflowModification:
		return r.failChange(ctx, o, failure, nothing)
	default:
		return r.failProvisioning(ctx, o, failure, nothing, o.mayHaveCreated())
	}
}

// recordLateMessage adds the text in /pav/error to the recorded failure, and reports it. It records the capacity that an expansion pod
// told, too: copies of the volume must have room for that.
func (r *Reconciler) recordLateMessage(ctx context.Context, o observation, _ decision) error {
	late, capacity := o.lateFailure(), o.lateCapacity()
	err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		if capacity != nil {
			setAttempted(status, *capacity)
		}
		if late == nil {
			return
		}
		failure := failureOf(status, late.Workflow)
		for i := range status.Conditions {
			c := &status.Conditions[i]
			c.Message = observability.Clip(strings.Replace(c.Message, (*failure).Message, late.Message, 1), observability.MaxCondition)
		}
		*failure = late
	})
	if err != nil || late == nil {
		return err
	}
	text := fmt.Sprintf("PavProvisioner %q: %s: %s", o.volume.Spec.Provisioner, phases[late.Workflow], late.Message)
	switch late.Workflow {
	case pavv1.WorkflowDeletion:
		r.reportDeletion(o, corev1.EventTypeWarning, protocol.VolumeFailedDelete, text)
	case pavv1.WorkflowExpansion, pavv1.WorkflowModification:
		r.tellUser(o, corev1.EventTypeWarning, reasonsOfChanges[conditionFor(late.Workflow)].fails, text)
	default:
		r.tellClaim(o.volume, corev1.EventTypeWarning, protocol.ProvisioningFailed, text)
	}
	return nil
}

// failureOf returns where a status has the failure of a workflow.
func failureOf(status *pavv1.PavVolumeStatus, kind string) **pavv1.WorkflowFailure {
	switch {
	case kind == pavv1.WorkflowDeletion:
		return &status.DeletionFailure
	case status.Change(kind) != nil:
		return &status.Change(kind).Failure
	case isChange(kind):
		return new(*pavv1.WorkflowFailure) // the change is over
	default:
		return &status.Failure
	}
}

// at sets the time of a failure, which is the last of so many, to the time of the cluster, from which the delay before
// the next attempt counts.
func (r *Reconciler) at(failure *pavv1.WorkflowFailure, failures int32) *pavv1.WorkflowFailure {
	workflow.Date(failure, int(failures), r.Now())
	return failure
}

// failureFrom returns the failure of a workflow with an error.
func failureFrom(kind string, err error) *pavv1.WorkflowFailure {
	failure := workflow.FailureWithoutPod(kind, err)
	if errors.Is(err, errInUse) {
		failure.Reason = pavv1.FailureHandleInUse
	}
	return failure
}

// refuseBegin records that an attempt has failed before any pod ran.
func (r *Reconciler) refuseBegin(ctx context.Context, o observation, d decision) error {
	return r.refuse(ctx, o, pavv1.WorkflowValidation, beginning(o, nil), &podplan.Error{Err: errors.New(d.Message)})
}

// refuse records that an attempt, which begin may have begun, has failed without a pod of the workflow. It returns errors
// that are not about the request.
func (r *Reconciler) refuse(ctx context.Context, o observation, kind string, begin change, err error) error {
	if !podplan.IsRefusal(err) {
		return err
	}
	// An earlier pass may have created the pod that is rejected now, without seeing or recording that.
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	switch kind {
	case pavv1.WorkflowDeletion:
		return r.failDeletion(ctx, o, failureFrom(kind, err), begin)
	case pavv1.WorkflowExpansion, pavv1.WorkflowModification:
		return r.failChange(ctx, o, failureFrom(kind, err), begin)
	}
	if failed := r.failProvisioning(ctx, o, failureFrom(kind, err), begin, false); failed != nil {
		return failed
	}
	if _, ok := errors.AsType[*podplan.NodeError](err); ok {
		return r.returnNode(ctx, o, decision{})
	}
	return nil
}

// phases are the names of workflows in messages.
var phases = map[string]string{
	pavv1.WorkflowValidation: "validation", pavv1.WorkflowCreation: "creation", pavv1.WorkflowDeletion: "deletion",
	pavv1.WorkflowExpansion: "expansion", pavv1.WorkflowModification: "modification",
}

// failProvisioning records that an attempt to provision, which begin may have begun, has failed, and whether the creation
// has to be reverted.
func (r *Reconciler) failProvisioning(ctx context.Context, o observation, failure *pavv1.WorkflowFailure, begin change, revert bool) error {
	r.handles.Release(o.volume.Name)
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	text := failure.Message
	if failure.PodName != "" {
		text = phases[failure.Workflow] + ": " + text
	}
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		begin(status)
		status.Failure, status.Pod, status.Step = r.at(failure, status.Attempt), nil, ""
		if revert {
			status.Step = pavv1.StepReverting
		} else {
			status.Plan = nil
		}
		setCondition(o.volume, status, pavv1.VolumeProvisioned, reasonOf(failure), text)
	}); err != nil {
		return err
	}
	if o.volume.Status.CreationPod == nil {
		r.slots.Release(o.volume.Name)
	}
	// A request that is rejected without a pod is rejected with the same text each time.
	if due, _ := r.repeats.Due(o.volume.Name, text, r.Now()); !due && failure.PodName == "" {
		return nil
	}
	next := fmt.Sprintf("attempt %d follows in %s", o.volume.Status.Attempt+1, workflow.DelayAfter(failure, int(o.volume.Status.Attempt)))
	switch {
	case revert:
		next = "the creation is reverted first"
	case failure.Reason == pavv1.FailureInfeasible:
		next += ", or when the claim or the definition changes"
	}
	r.tellClaim(o.volume, corev1.EventTypeWarning, protocol.ProvisioningFailed,
		fmt.Sprintf("PavProvisioner %q: %s; %s", o.volume.Spec.Provisioner, text, next))
	return nil
}

func reasonOf(failure *pavv1.WorkflowFailure) string {
	switch {
	case failure.PodName == "":
		return "Refused"
	case failure.Workflow == pavv1.WorkflowValidation:
		return "ValidationFailed"
	default:
		return "CreationFailed"
	}
}

// failDeletion records that an attempt to delete or to revert, which begin may have begun, has failed.
func (r *Reconciler) failDeletion(ctx context.Context, o observation, failure *pavv1.WorkflowFailure, begin change) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	var text string
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		begin(status)
		status.DeletionFailure, status.Pod = r.at(failure, status.DeletionAttempt), nil
		text = fmt.Sprintf("PavProvisioner %q: deletion attempt %d failed: %s; the next follows in %s",
			o.volume.Spec.Provisioner, status.DeletionAttempt, failure.Message, workflow.DelayAfter(failure, int(status.DeletionAttempt)).Round(time.Second))
		setCondition(o.volume, status, pavv1.VolumeDeleted, "DeletionFailed", text)
	}); err != nil {
		return err
	}
	r.slots.Release(o.volume.Name)
	r.reportDeletion(o, corev1.EventTypeWarning, protocol.VolumeFailedDelete, text)
	return nil
}

// reportDeletion records an event on every object where people may look for why a volume is not deleted.
func (r *Reconciler) reportDeletion(o observation, eventType, reason, message string) {
	message = observability.Clip(message, observability.MaxNote)
	r.Events.Event(o.volume, eventType, reason, message)
	if pv := o.ownPV(); pv != nil {
		r.Events.Event(pv, eventType, reason, message)
	}
	if o.pending() && o.claim == claimWaits {
		r.Events.Event(claimObject(o.volume), eventType, reason, message)
	}
}

// tellClaimOnce warns the users of the claim, unless the same was said a short time ago.
func (r *Reconciler) tellClaimOnce(volume *pavv1.PavVolume, message string) {
	if due, _ := r.repeats.Due(volume.Name, message, r.Now()); due {
		r.tellClaim(volume, corev1.EventTypeWarning, protocol.ProvisioningFailed, message)
	}
}

func (r *Reconciler) tellClaim(volume *pavv1.PavVolume, eventType, reason, message string) {
	r.Events.Event(claimObject(volume), eventType, reason, observability.Clip(message, observability.MaxNote))
}

// claimObject returns a claim that events about the volume's claim refer to.
func claimObject(volume *pavv1.PavVolume) *corev1.PersistentVolumeClaim {
	ref := volume.Spec.ClaimRef
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}}
}
