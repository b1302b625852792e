package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// changeRequest returns the request from which the current definition changes a volume: the claim and the PersistentVolume as the API
// server has them now. If the claim is not bound to the volume any more, the error is reconcile.ErrStale, as the cache is behind.
func (r *Reconciler) changeRequest(ctx context.Context, o observation) (podplan.VolumeRequest, error) {
	if o.user == nil || o.provisioner == nil {
		return podplan.VolumeRequest{}, reconcile.ErrStale
	}
	claim, err := reconcile.ReadClaim(ctx, r.Live, client.ObjectKeyFromObject(o.user))
	if err != nil {
		return podplan.VolumeRequest{}, err
	}
	pv, err := reconcile.ReadObject(ctx, r.Live, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), client.ObjectKey{Name: o.volume.Name})
	if err != nil {
		return podplan.VolumeRequest{}, err
	}
	if claim == nil || claim.GetUID() != o.user.UID || pv == nil || pv.GetUID() != o.pv.UID {
		return podplan.VolumeRequest{}, reconcile.ErrStale
	}
	request, err := r.requestOf(o, claim.Object)
	request.Attributes = o.attributes.Parameters
	request.Volume, request.Provisioner, request.Generation = pv.Object, o.provisioner.UID, o.provisioner.Generation
	return request, err
}

// recordChanged records what the volume is after the recorded pod has succeeded.
func (r *Reconciler) recordChanged(ctx context.Context, o observation, _ decision) error {
	if o.modifying() {
		return r.modified(ctx, o, nothing)
	}
	return r.recordExpanded(ctx, o)
}

// endChange returns the step that records that a change is not wanted any more.
func endChange(kind string) func(*Reconciler, context.Context, observation, decision) error {
	return func(r *Reconciler, ctx context.Context, o observation, d decision) error {
		if err := r.confirm(ctx, o, d); err != nil {
			return err
		}
		return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
			kept := keptModification(status)
			clearChange(status, kind)
			if kind == pavv1.WorkflowModification && kept != nil && o.isOfFormer(&kept.ChangeAttempt) {
				status.Modification = kept
			}
		})
	}
}

// keptModification returns what is kept of a modification that is not continued: the volume may have some of its attributes, so that
// the next claim that names a class gets all of them. It returns nil if it has none.
func keptModification(status *pavv1.PavVolumeStatus) *pavv1.VolumeModificationRecord {
	if !status.Modification.HasEffects() {
		return nil
	}
	kept := status.Modification.DeepCopy()
	kept.Failure = nil
	return kept
}

// clearChange removes the record of a change that is over, and its pod.
func clearChange(status *pavv1.PavVolumeStatus, kind string) {
	if workflows[status.Step] == kind {
		status.Step, status.Pod = "", nil
	}
	if kind == pavv1.WorkflowExpansion {
		status.Expansion = nil
	} else {
		status.Modification = nil
	}
	meta.RemoveStatusCondition(&status.Conditions, conditionFor(kind))
}

// clearChanges removes what is recorded of changes of a volume that is deleted.
func clearChanges(status *pavv1.PavVolumeStatus) {
	clearChange(status, pavv1.WorkflowExpansion)
	clearChange(status, pavv1.WorkflowModification)
}

// updatePV writes the capacity of the volume and the VolumeAttributesClass that it has to its PersistentVolume. The claim shows them
// after that.
func (r *Reconciler) updatePV(ctx context.Context, o observation, _ decision) error {
	pv := o.pv.DeepCopy()
	if o.pvTooSmall() {
		if pv.Spec.Capacity == nil {
			pv.Spec.Capacity = corev1.ResourceList{}
		}
		pv.Spec.Capacity[corev1.ResourceStorage] = *o.volume.Status.Capacity
		return r.patch(ctx, o.pv, pv)
	}
	class := o.attributesClassHad()
	pv.Spec.VolumeAttributesClassName = &class
	err := r.patch(ctx, o.pv, pv)
	if named := pv.Spec.VolumeAttributesClassName; err == nil && (named == nil || *named != class) {
		r.dropsAttributes.Store(true) // nothing of PaV depends on them
		return reconcile.ErrStale
	}
	return err
}

// changeReasons are the reasons for what is said of a change: those of events, which are those of Kubernetes' external-resizer, and
// that of the condition after an attempt that has failed.
type changeReasons struct{ begins, fails, hasFailed string }

// reasonsOfChanges are those of each condition that reports a change.
var reasonsOfChanges = map[string]changeReasons{
	pavv1.VolumeExpanded: {protocol.VolumeResizing, protocol.VolumeResizeFailed, "ExpansionFailed"},
	pavv1.VolumeModified: {protocol.VolumeModify, protocol.VolumeModifyFailed, "ModificationFailed"},
}

// failChange records that an attempt to change a volume, which begin may have begun, has failed.
func (r *Reconciler) failChange(ctx context.Context, o observation, failure *pavv1.WorkflowFailure, begin change) error {
	kind := failure.Workflow
	condition := conditionFor(kind)
	reasons := reasonsOfChanges[condition]
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	var text string
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		begin(status)
		attempt := status.Change(kind)
		if attempt == nil { // someone has removed it
			clearChange(status, kind)
			return
		}
		attempt.Failure, attempt.Uncertain = r.at(failure, attempt.Attempt), o.mayHaveChanged(failure)
		if e := status.Expansion; kind == pavv1.WorkflowExpansion {
			e.Offline = e.Offline && e.Uncertain // until the next attempt
			if o.hasPartlyChanged(failure) {
				setAttempted(status, o.reached(e))
			}
		} else {
			status.Modification.Partial = status.Modification.Partial || o.hasPartlyChanged(failure)
		}
		status.Step, status.Pod = "", nil
		text = fmt.Sprintf("PavProvisioner %q: %s: attempt %d failed: %s; the next follows in %s",
			o.volume.Spec.Provisioner, describeChange(status, kind), attempt.Attempt, failure.Message, workflow.DelayAfter(failure, int(attempt.Attempt)))
		if failure.Reason == pavv1.FailureInfeasible {
			text += ", or when the claim or the definition changes"
		}
		if kind == pavv1.WorkflowExpansion && status.Expansion.Offline {
			text += "; " + untilGrown
		}
		setCondition(o.volume, status, condition, reasons.hasFailed, text)
	}); err != nil {
		return err
	}
	r.slots.Release(o.volume.Name)
	// A request that is refused without a pod is refused with the same text each time.
	if due, _ := r.repeats.Due(o.volume.Name, failure.Message, r.Now()); due || failure.PodName != "" {
		r.tellUser(o, corev1.EventTypeWarning, reasons.fails, text)
	}
	return nil
}

// describeChange returns a change and its target, in words.
func describeChange(status *pavv1.PavVolumeStatus, kind string) string {
	if kind == pavv1.WorkflowExpansion {
		return "expansion to " + status.Expansion.Target.String()
	}
	return fmt.Sprintf("modification to VolumeAttributesClass %q", status.Modification.Target.Class)
}

// mayHaveChanged reports whether it is not known what the pods of a change have done, the last of which has failed: it is gone, or
// was stopped. That another one could not be created says nothing about those before.
func (o observation) mayHaveChanged(failure *pavv1.WorkflowFailure) bool {
	pod := o.pod()
	switch {
	case failure.PodName == "" && failure.Workflow == pavv1.WorkflowModification:
		return o.isModificationUncertain()
	case failure.PodName == "":
		return o.isUncertain()
	case failure.Reason == pavv1.FailureOutputInvalid:
		return false
	default:
		return pod == nil || workflow.Started(pod) && !workflow.FailedByItself(pod)
	}
}

// hasPartlyChanged reports whether the pod that has failed may have changed something.
func (o observation) hasPartlyChanged(failure *pavv1.WorkflowFailure) bool {
	pod := o.pod()
	return failure.PodName != "" && failure.Reason != pavv1.FailureInfeasible && (pod == nil || workflow.Started(pod))
}

// setGeneration records the generation of the definition that the pod of the current step is created from.
func setGeneration(status *pavv1.PavVolumeStatus, generation int64) {
	if m := status.Modification; m != nil && status.Step == pavv1.StepModifying {
		m.ProvisionerGeneration = generation
		return
	}
	status.ProvisionerGeneration = generation
}
