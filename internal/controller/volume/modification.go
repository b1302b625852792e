package volume

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
)

// modify begins an attempt to modify the volume: the attributes that it is to have are recorded before any effect.
func (r *Reconciler) modify(ctx context.Context, o observation, d decision) error {
	live, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	_, target := live.targetAttributes()
	if target == nil {
		return reconcile.ErrStale
	}
	begin := modifying(live, *target)
	request, err := r.modificationRequest(ctx, live, *target, reconcile.StagedOn(live.others))
	if err != nil {
		return err
	}
	pod, err := request.Modify(ctx, live.provisioner.Spec.VolumeModification)
	if err != nil {
		return r.refuse(ctx, live, pavv1.WorkflowModification, begin, err)
	}
	if pod == nil {
		return r.modified(ctx, live, begin)
	}
	return r.intend(ctx, live, intent{
		step: pavv1.StepModifying, pod: pod, generation: request.Generation, within: podplan.WithinReach(live.volume), change: begin,
	})
}

// modifying records an attempt to give a volume attributes.
func modifying(o observation, target pavv1.VolumeAttributes) change {
	return func(status *pavv1.PavVolumeStatus) {
		next := &pavv1.VolumeModificationRecord{Target: target, ProvisionerGeneration: o.provisioner.Generation}
		next.Attempt, next.ClaimUID = 1, o.user.UID
		if m := status.Modification; m != nil && o.isOfFormer(&m.ChangeAttempt) {
			next.Partial = m.HasEffects()
		} else if m != nil {
			next.Attempt += m.Attempt
			next.Failure, next.Uncertain, next.Partial = m.Failure, m.Uncertain, m.Partial // until this attempt has ended
		}
		next.StagedOn = reconcile.StagedOn(o.others)
		status.Modification = next
		status.LastHandledRetry = o.volume.Annotations[pavv1.RetryAnnotation]
	}
}

// modificationRequest returns the request from which the current definition gives a volume attributes.
func (r *Reconciler) modificationRequest(ctx context.Context, o observation, target pavv1.VolumeAttributes, stagedOn []string) (podplan.VolumeRequest, error) {
	request, err := r.changeRequest(ctx, o)
	request.Attributes, request.OldAttributes, request.StagedOn = target.Parameters, request.Attributes, stagedOn
	return request, err
}

// recordedModification evaluates the template of the recorded modification pod again.
func (i *intent) recordedModification(ctx context.Context, r *Reconciler, o observation) error {
	m := o.modification()
	if m == nil {
		return reconcile.ErrStale // someone has removed it
	}
	request, err := r.modificationRequest(ctx, o, m.Target, m.StagedOn)
	if err != nil {
		return err
	}
	if i.pod, err = request.Modify(ctx, o.provisioner.Spec.VolumeModification); err != nil {
		return err
	}
	i.generation, i.within = request.Generation, podplan.WithinReach(o.volume)
	return nil
}

// modified records that the volume has the attributes of the recorded modification.
func (r *Reconciler) modified(ctx context.Context, o observation, begin change) error {
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		begin(status)
		if m := status.Modification; m != nil { // unless someone has removed it
			status.Attributes = &m.Target
		}
		clearChange(status, pavv1.WorkflowModification)
	}); err != nil {
		return err
	}
	if has := o.volume.Status.Attributes; has != nil {
		ctrl.LoggerFrom(ctx).Info("modified a volume", observability.AttributesClass, has.Class)
	}
	return nil
}
