package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// expand begins an attempt to expand the volume: the capacity that it is to have is recorded before any effect.
func (r *Reconciler) expand(ctx context.Context, o observation, d decision) error {
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
	request, err := r.changeRequest(ctx, live)
	if err != nil {
		return err
	}
	request.StagedOn = reconcile.StagedOn(live.others)
	planned, err := request.ExpandWithin(ctx, &live.provisioner.Spec, target.Value())
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
func (r *Reconciler) hold(ctx context.Context, o observation, d decision) error {
	if err := r.confirm(ctx, o, d); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		if status.Expansion == nil {
			status.Expansion = &pavv1.VolumeExpansionRecord{Target: o.target(), ChangeAttempt: pavv1.ChangeAttempt{ClaimUID: o.user.UID}}
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
func expanding(o observation, target resource.Quantity) change {
	return func(status *pavv1.PavVolumeStatus) {
		next := &pavv1.VolumeExpansionRecord{Target: target, ChangeAttempt: pavv1.ChangeAttempt{Attempt: 1, ClaimUID: o.user.UID}}
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

// recordedExpansion evaluates the template of the recorded expansion pod again.
func (i *intent) recordedExpansion(ctx context.Context, r *Reconciler, o observation) error {
	request, err := r.changeRequest(ctx, o)
	if err != nil {
		return err
	}
	target := o.expansion().Target.Value()
	request.StagedOn = o.expansion().StagedOn
	planned, err := request.ExpandWithin(ctx, &o.provisioner.Spec, target)
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
func (r *Reconciler) recordExpanded(ctx context.Context, o observation) error {
	e := o.expansion()
	if e == nil { // someone has removed it
		return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) { clearChange(status, pavv1.WorkflowExpansion) })
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
		return r.failChange(ctx, o, failure, nothing)
	}
	return r.grown(ctx, o, nothing, capacity)
}

// reached returns the capacity that the volume may have after its expansion pod has failed: what the pod told, or else what it was to
// reach.
func (o observation) reached(e *pavv1.VolumeExpansionRecord) resource.Quantity {
	if told := capacityTold(o.pod()); told != nil {
		return *told
	}
	if e.Capacity != nil && e.Capacity.Cmp(e.Target) > 0 {
		return *e.Capacity
	}
	return e.Target
}

// capacityTold returns the capacity that a pod, which may be nil, wrote to /pav/capacity, as far as its node has reported it; nil if there
// is none.
func capacityTold(pod *corev1.Pod) *resource.Quantity {
	if pod == nil {
		return nil
	}
	result, err := workflow.ResultOf(pod)
	if err != nil || result == nil || result.Capacity == "" {
		return nil
	}
	capacity, err := template.ParseCapacity(result.Capacity)
	if err != nil {
		return nil
	}
	return resource.NewQuantity(capacity, resource.BinarySI)
}

// lateCapacity returns the capacity that the pod of a failed expansion may have reached, which its node reported after the failure was
// recorded; nil if the record does not lack it.
func (o observation) lateCapacity() *resource.Quantity {
	status := &o.volume.Status
	failure, largest := status.ChangeFailure(pavv1.WorkflowExpansion), status.LargestCapacity()
	if failure == nil || failure.Reason == pavv1.FailureInfeasible || largest == nil {
		return nil
	}
	told := capacityTold(attempt.PodNamed(o.pods, failure.PodNamespace, failure.PodName))
	if told == nil || told.Cmp(*largest) <= 0 {
		return nil
	}
	return told
}

// setAttempted records that an expansion pod may have reached a capacity although it failed.
func setAttempted(status *pavv1.PavVolumeStatus, target resource.Quantity) {
	if largest := status.LargestCapacity(); largest == nil || target.Cmp(*largest) > 0 {
		status.AttemptedCapacity = &target
	}
}

// grown records that the volume has the capacity, in bytes.
func (r *Reconciler) grown(ctx context.Context, o observation, begin change, capacity int64) error {
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		begin(status)
		if has := status.Capacity; has == nil || has.Value() < capacity { // it never shrinks
			status.Capacity = resource.NewQuantity(capacity, resource.BinarySI)
		}
		if largest := status.LargestCapacity(); largest == status.Capacity {
			status.AttemptedCapacity = nil
		}
		clearChange(status, pavv1.WorkflowExpansion)
	}); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("expanded a volume", "capacity", o.volume.Status.Capacity.String())
	return nil
}
