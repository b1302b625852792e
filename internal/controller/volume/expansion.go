package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// gatherUser reads the claim that is bound to the PersistentVolume. A volume populator may have given the volume to another
// claim than the one that it was made for. Claim is the latter, or nil.
func (o *snapshot) gatherUser(ctx context.Context, reader client.Reader, claim *corev1.PersistentVolumeClaim) error {
	o.user = nil
	if o.pv == nil || o.pv.Spec.ClaimRef == nil || o.pv.Status.Phase != corev1.VolumeBound {
		return nil
	}
	ref := o.pv.Spec.ClaimRef
	if claim == nil || claim.UID != ref.UID {
		var err error
		if claim, err = optional(ctx, reader, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, &corev1.PersistentVolumeClaim{}); err != nil {
			return err
		}
	}
	if claim != nil && claim.UID == ref.UID && claim.Spec.VolumeName == o.volume.Name && claim.Status.Phase == corev1.ClaimBound {
		o.user = claim
	}
	return nil
}

// expand begins an attempt to expand the volume: the capacity that it is to have is recorded before any effect.
func (r *Reconciler) expand(ctx context.Context, o snapshot, d decision) error {
	live, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	if live.growsOffline() {
		if err := r.checkUnstaged(ctx, live); err != nil {
			return err
		}
	}
	target := live.target()
	begin := expanding(live, target)
	request, err := r.expansionRequest(ctx, live)
	if err != nil {
		return err
	}
	request.StagedOn = reconcile.StagedOn(live.others)
	planned, err := request.Expand(ctx, live.provisioner.Spec.VolumeExpansion, target.Value())
	if err == nil {
		err = request.CheckLargest(ctx, live.provisioner.Spec.VolumeValidation, target.Value())
	}
	if err != nil {
		return r.refuse(ctx, live, pavv1.WorkflowExpansion, begin, err)
	}
	if planned.Pod == nil {
		capacity, err := planned.Outcome(nil)
		if err != nil {
			return err
		}
		return r.grown(ctx, live, begin, capacity)
	}
	return r.intend(ctx, live, intent{
		step: pavv1.StepExpanding, pod: planned.Pod, generation: request.Generation, within: podplan.WithinReach(live.volume),
		change: func(status *pavv1.PavVolumeStatus) {
			begin(status)
			setCapacity(status.Expansion, planned)
		},
	})
}

// hold records that the volume is to grow while no node has it staged. A node writes its PavStage first and then looks for this
// record; it is written before anyone looks for PavStages. So of a node and an expansion, at least one sees the other.
func (r *Reconciler) hold(ctx context.Context, o snapshot, d decision) error {
	if err := r.confirm(ctx, o, d); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		if status.Expansion == nil {
			status.Expansion = &pavv1.VolumeExpansionRecord{Target: o.target()}
		}
		status.Expansion.Offline = true
	})
}

// setCapacity records the capacity in the definition, if it has one.
func setCapacity(e *pavv1.VolumeExpansionRecord, planned *podplan.Expansion) {
	e.Capacity = nil
	if planned.Capacity > 0 {
		e.Capacity = resource.NewQuantity(planned.Capacity, resource.BinarySI)
	}
}

// expanding records an attempt to reach a capacity.
func expanding(o snapshot, target resource.Quantity) change {
	return func(status *pavv1.PavVolumeStatus) {
		next := &pavv1.VolumeExpansionRecord{Target: target, Attempt: 1}
		if e := status.Expansion; e != nil {
			next.Attempt += e.Attempt
			next.Failure, next.Uncertain, next.Offline = e.Failure, e.Uncertain, e.Offline // until this attempt has ended
		}
		next.StagedOn = reconcile.StagedOn(o.others)
		status.Expansion = next
		status.LastHandledRetry = o.volume.Annotations[pavv1.RetryAnnotation]
		status.ProvisionerGeneration = o.provisioner.Generation
	}
}

// expansionRequest returns the request that the current definition expands: the claim and the PersistentVolume as the API server
// has them now. If the claim is not bound to the volume any more, the error is reconcile.ErrStale, as the cache is behind.
func (r *Reconciler) expansionRequest(ctx context.Context, o snapshot) (podplan.VolumeRequest, error) {
	if o.user == nil || o.provisioner == nil {
		return podplan.VolumeRequest{}, reconcile.ErrStale
	}
	claim, err := r.readClaim(ctx, client.ObjectKeyFromObject(o.user))
	if err != nil {
		return podplan.VolumeRequest{}, err
	}
	pv, err := r.read(ctx, corev1.SchemeGroupVersion.WithKind("PersistentVolume"), types.NamespacedName{Name: o.volume.Name})
	if err != nil {
		return podplan.VolumeRequest{}, err
	}
	if claim == nil || claim.GetUID() != o.user.UID || pv == nil || pv.GetUID() != o.pv.UID {
		return podplan.VolumeRequest{}, reconcile.ErrStale
	}
	request, err := r.requestOf(o, claim.Object)
	request.Volume, request.Provisioner, request.Generation = pv.Object, o.provisioner.UID, o.provisioner.Generation
	return request, err
}

// recordedExpansion evaluates the template of the recorded expansion pod again.
func (i *intent) recordedExpansion(ctx context.Context, r *Reconciler, o snapshot) error {
	request, err := r.expansionRequest(ctx, o)
	if err != nil {
		return err
	}
	target := o.expansion().Target.Value()
	request.StagedOn = o.expansion().StagedOn
	planned, err := request.Expand(ctx, o.provisioner.Spec.VolumeExpansion, target)
	if err == nil {
		err = request.CheckLargest(ctx, o.provisioner.Spec.VolumeValidation, target)
	}
	if err != nil {
		return err
	}
	// The capacity that is recorded is that of the definition with which the pod is created.
	if recorded := o.expansion().Capacity; recorded == nil && planned.Capacity > 0 || recorded != nil && recorded.Value() != planned.Capacity {
		if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) { setCapacity(status.Expansion, planned) }); err != nil {
			return err
		}
		return reconcile.ErrStale // the next pass creates the pod
	}
	i.pod, i.generation, i.within = planned.Pod, request.Generation, podplan.WithinReach(o.volume)
	return nil
}

// recordExpanded records the capacity that the volume has after its expansion pod has succeeded.
func (r *Reconciler) recordExpanded(ctx context.Context, o snapshot, _ decision) error {
	e := o.expansion()
	if e == nil { // someone has removed it
		return r.patchStatus(ctx, o.volume, clearExpansion)
	}
	pod := o.pod()
	result, err := workflow.ResultOf(pod)
	if err != nil {
		err = &podplan.Error{Err: err}
	}
	planned := &podplan.Expansion{Target: e.Target.Value()}
	if e.Capacity != nil {
		planned.Capacity = e.Capacity.Value()
	}
	var capacity int64
	if err == nil {
		capacity, err = planned.Outcome(result)
	}
	if err != nil {
		failure := failureFrom(pavv1.WorkflowExpansion, err)
		failure.Reason, failure.PodNamespace, failure.PodName = pavv1.FailureOutputInvalid, pod.Namespace, pod.Name
		return r.failExpansion(ctx, o, failure, nothing)
	}
	return r.grown(ctx, o, nothing, capacity)
}

// grown records that the volume has the capacity, in bytes.
func (r *Reconciler) grown(ctx context.Context, o snapshot, begin change, capacity int64) error {
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		begin(status)
		if has := status.Capacity; has == nil || has.Value() < capacity { // it never shrinks
			status.Capacity = resource.NewQuantity(capacity, resource.BinarySI)
		}
		clearExpansion(status)
	}); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("expanded a volume", "capacity", o.volume.Status.Capacity.String())
	return nil
}

// endExpansion records that the volume is not to grow any more.
func (r *Reconciler) endExpansion(ctx context.Context, o snapshot, d decision) error {
	if err := r.confirm(ctx, o, d); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.volume, clearExpansion)
}

// clearExpansion removes the record of an expansion that is over.
func clearExpansion(status *pavv1.PavVolumeStatus) {
	status.Step, status.Pod, status.Expansion = "", nil, nil
	meta.RemoveStatusCondition(&status.Conditions, pavv1.VolumeExpanded)
}

// failExpansion records that an attempt to expand, which begin may have begun, has failed.
func (r *Reconciler) failExpansion(ctx context.Context, o snapshot, failure *pavv1.WorkflowFailure, begin change) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	var text string
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		begin(status)
		e := status.Expansion
		if e == nil { // someone has removed it
			clearExpansion(status)
			return
		}
		e.Failure, e.Uncertain = r.at(failure, e.Attempt), o.mayHaveExpanded(failure)
		e.Offline = e.Offline && e.Uncertain // until the next attempt
		status.Step, status.Pod = "", nil
		text = fmt.Sprintf("PavProvisioner %q: expansion to %s: attempt %d failed: %s; the next follows in %s",
			o.volume.Spec.Provisioner, e.Target.String(), e.Attempt, failure.Message, workflow.DelayAfter(failure, int(e.Attempt)))
		if failure.Reason == pavv1.FailureInfeasible {
			text += ", or when the claim or the definition changes"
		}
		setCondition(o.volume, status, pavv1.VolumeExpanded, "ExpansionFailed", text)
	}); err != nil {
		return err
	}
	r.slots.Release(o.volume.Name)
	// A request that is refused without a pod is refused with the same text each time.
	if due, _ := r.repeats.Due(o.volume.Name, failure.Message, r.Now()); due || failure.PodName != "" {
		r.tellUser(o, corev1.EventTypeWarning, protocol.VolumeResizeFailed, text)
	}
	return nil
}

// mayHaveExpanded reports whether it is not known what the pods of an expansion have done, the last of which has failed: it is
// gone, or was stopped. That another one could not be created says nothing about those before.
func (o snapshot) mayHaveExpanded(failure *pavv1.WorkflowFailure) bool {
	pod := o.pod()
	switch {
	case failure.PodName == "":
		return o.isUncertain()
	case failure.Reason == pavv1.FailureOutputInvalid:
		return false
	default:
		return pod == nil || workflow.Started(pod) && !workflow.FailedByItself(pod)
	}
}

// growPV writes the capacity of the volume to its PersistentVolume.
func (r *Reconciler) growPV(ctx context.Context, o snapshot, _ decision) error {
	pv := o.pv.DeepCopy()
	if pv.Spec.Capacity == nil {
		pv.Spec.Capacity = corev1.ResourceList{}
	}
	pv.Spec.Capacity[corev1.ResourceStorage] = *o.volume.Status.Capacity
	return r.patch(ctx, o.pv, pv)
}

// showSize writes to the status of the claim how large the volume is, and that it grows. The claim is read from the API server,
// as the cache does not have all of its status.
func (r *Reconciler) showSize(ctx context.Context, o snapshot, _ decision) error {
	claim, err := optional(ctx, r.Live, client.ObjectKeyFromObject(o.user), &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	if claim == nil || claim.UID != o.user.UID || claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != o.volume.Name {
		return reconcile.ErrStale
	}
	o.user = claim
	before, after := sizeShown(claim), sizeOf(o)
	if before == after {
		return reconcile.ErrStale // an earlier pass wrote it
	}
	if before.resize == corev1.PersistentVolumeClaimNodeResizeInfeasible && after.resize != before.resize && o.expansion() == nil {
		// Nodes are asked again, once for each definition and after each delay.
		if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
			status.ProvisionerGeneration, status.NodesAskedTime = o.provisioner.Generation, new(metav1.NewTime(r.Now()))
		}); err != nil {
			return err
		}
	}
	changed := claim.DeepCopy()
	after.show(&changed.Status, metav1.NewTime(r.Now()))
	patch := client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, changed, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the status of claim %s: %w", observability.Name(claim.Namespace, claim.Name), err)
	}
	switch {
	case after.onNode && !before.onNode:
		r.tellUser(o, corev1.EventTypeNormal, protocol.FileSystemResizeRequired, fmt.Sprintf("the volume has grown to %s; a node has to make the new capacity available", o.volume.Status.Capacity))
	case after.capacity != before.capacity:
		r.tellUser(o, corev1.EventTypeNormal, protocol.VolumeResizeSuccessful, fmt.Sprintf("the volume has grown from %s to %s", before.capacity, after.capacity))
	case after.resizing && !before.resizing:
		target := o.expansion().Target
		r.tellUser(o, corev1.EventTypeNormal, protocol.VolumeResizing, fmt.Sprintf("PavProvisioner %q is expanding the volume to %s", o.volume.Spec.Provisioner, target.String()))
	}
	if got := sizeShown(changed); got.allocated != after.allocated || got.resize != after.resize {
		r.dropsSizes.Store(true) // nothing of PaV depends on them
		return reconcile.ErrStale
	}
	return nil
}

// tellUser records an event on the claim that is bound to the volume or, if there is none, on the PavVolume.
func (r *Reconciler) tellUser(o snapshot, eventType, reason, message string) {
	message = observability.Clip(message, observability.MaxNote)
	if o.user == nil {
		r.Events.Event(o.volume, eventType, reason, message)
		return
	}
	r.Events.Event(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: o.user.Namespace, Name: o.user.Name, UID: o.user.UID}}, eventType, reason, message)
}
