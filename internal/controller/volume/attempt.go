package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// begin begins an attempt to provision: with the validation pod or, if there is none, with creation.
func (r *Reconciler) begin(ctx context.Context, o observation, _ decision) error {
	request, err := r.provisioningRequest(ctx, o, definitionOf(o.provisioner), o.selectedNode)
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowValidation, beginning(o, nil), err)
	}
	if chosen, _, _ := unstructured.NestedString(request.Claim, "metadata", "annotations", protocol.SelectedNode); o.selectedNode != "" && chosen != o.selectedNode {
		return reconcile.ErrStale
	}
	if err := o.checkAttributes(); err != nil { // The definition may have changed since the last attempt.
		return r.refuse(ctx, o, pavv1.WorkflowValidation, beginning(o, nil), err)
	}
	request.Source = podplan.SourceOf(o.volume, o.source.capacity())
	if err := o.checkRoom(request); err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowValidation, beginning(o, nil), err)
	}
	if err := r.reachSource(ctx, &o, &request); err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowValidation, beginning(o, nil), err)
	}
	claim, err := podplan.RecordClaim(request.Claim)
	if err != nil { // The claim may have grown since the last attempt.
		return r.refuse(ctx, o, pavv1.WorkflowValidation, beginning(o, nil), err)
	}
	start := beginning(o, claim)
	pod, err := request.Validate(ctx, o.provisioner.Spec.VolumeValidation)
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowValidation, start, err)
	}
	if pod == nil {
		return r.createBy(ctx, o, request, o.provisioner.Spec.VolumeCreation, start)
	}
	return r.intend(ctx, o, intent{step: pavv1.StepValidating, pod: pod, generation: request.Generation, change: start})
}

// checkAttributes checks the attributes with which the volume is to be created.
func (o observation) checkAttributes() error {
	class, err := podplan.AttributesClassAtCreation(o.volume)
	if err != nil || class == nil {
		return err
	}
	return podplan.CheckAttributes(o.provisioner, class)
}

// create continues with creation after the validation pod has succeeded.
func (r *Reconciler) create(ctx context.Context, o observation, _ decision) error {
	request, err := r.validatedRequest(ctx, o)
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowCreation, nothing, err)
	}
	return r.createBy(ctx, o, request, o.volume.Status.Definition.VolumeCreation, nothing)
}

// change changes a status in the same write that records the next step.
type change func(*pavv1.PavVolumeStatus)

func nothing(*pavv1.PavVolumeStatus) {}

// beginning records a new attempt. Claim is the claim that it validates, or nil to keep the recorded one.
func beginning(o observation, claim *apiextensionsv1.JSON) change {
	return func(status *pavv1.PavVolumeStatus) {
		status.Phase, status.RecordUID, status.AttemptGeneration = pavv1.VolumePending, o.volume.UID, o.volume.Generation
		status.Attempt++
		status.LastHandledRetry = o.volume.Annotations[pavv1.RetryAnnotation]
		status.Definition = definitionOf(o.provisioner)
		status.SelectedNode = o.selectedNode
		status.SourceCapacity = o.source.capacity()
		status.DependsOnSource = o.volume.Spec.Source != nil && dependsOnSource(o.provisioner)
		if claim != nil {
			status.ProvisionedClaim = claim
		}
	}
}

func definitionOf(p *pavv1.PavProvisioner) *pavv1.VolumeDefinition {
	return &pavv1.VolumeDefinition{
		UID: p.UID, Generation: p.Generation,
		VolumeValidation: p.Spec.VolumeValidation, VolumeCreation: p.Spec.VolumeCreation,
	}
}

// createBy records the creation pod or, if there is none, the volume's handle and capacity. They are recorded before the
// PersistentVolume is written, so that a repeated pass writes the same one.
func (r *Reconciler) createBy(ctx context.Context, o observation, request podplan.VolumeRequest, c *pavv1.VolumeCreation, begin change) error {
	if o.ofBucket() {
		return r.awaitBucket(ctx, o, request, c, begin)
	}
	creation, err := request.Create(ctx, c)
	if err == nil && creation.Handle != "" {
		err = r.reserve(ctx, o, "spec.volumeCreation.handle", creation.Handle)
	}
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowCreation, begin, err)
	}
	if creation.Pod == nil {
		return r.createWithoutPod(ctx, o, creation, begin)
	}
	if err := r.checkNoPV(ctx, o); err != nil {
		return err
	}
	if err := r.enterSource(ctx, o); err != nil {
		return err
	}
	return r.intend(ctx, o, intent{
		step: pavv1.StepCreating, pod: creation.Pod, generation: request.Generation, within: creation.Within,
		change: func(status *pavv1.PavVolumeStatus) { begin(status); status.Plan = planned(creation) },
	})
}

// planned returns the plan of a volume, as it is recorded.
func planned(creation *podplan.Creation) *pavv1.VolumePlan {
	p := &pavv1.VolumePlan{Handle: creation.Handle, AccessibleTopology: creation.Topology}
	if creation.Capacity > 0 {
		p.Capacity = resource.NewQuantity(creation.Capacity, resource.BinarySI)
	}
	return p
}

func (r *Reconciler) createWithoutPod(ctx context.Context, o observation, creation *podplan.Creation, begin change) error {
	made, err := creation.Outcome(nil)
	if err == nil {
		err = r.reserve(ctx, o, "the default handle", made.Handle)
	}
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowCreation, begin, err)
	}
	r.reportEarlier(o, made.Handle)
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		begin(status)
		status.Plan = nil
		setMade(status, made, creation.Topology)
	}); err != nil {
		return err
	}
	return r.goOn(ctx, o.volume)
}

// setMade records the handle, capacity and topology of a volume that is created.
func setMade(status *pavv1.PavVolumeStatus, made podplan.VolumeOutcome, accessible []pavv1.TopologyLabels) {
	status.Step, status.Pod, status.Conflict, status.SyncRequestTime = "", nil, nil, nil
	status.Handle, status.Capacity = made.Handle, resource.NewQuantity(made.Capacity, resource.BinarySI)
	status.AccessibleTopology = accessible
}

// recordCreated records the volume's handle and capacity, from the definition and the files of the creation pod. If they
// are invalid, the creation is reverted.
func (r *Reconciler) recordCreated(ctx context.Context, o observation, _ decision) error {
	pod := o.pod()
	goesOn := o.goesOn(pod)
	made, err := r.made(ctx, o, pod)
	if podplan.IsRefusal(err) {
		failure := failureFrom(pavv1.WorkflowCreation, err)
		if failure.Reason == pavv1.FailureRefused {
			failure.Reason = pavv1.FailureOutputInvalid
		}
		failure.PodNamespace, failure.PodName = pod.Namespace, pod.Name
		return r.failProvisioning(ctx, o, failure, goesOn, true)
	}
	if err != nil {
		return err
	}
	r.reportEarlier(o, made.Handle)
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		goesOn(status)
		setMade(status, made, status.Plan.AccessibleTopology)
	}); err != nil {
		return err
	}
	if workflow.IsReady(pod) {
		r.reportCreationFailure(o, pod)
	} else if result, err := workflow.ResultOf(pod); err == nil && result.Error != "" {
		r.tellClaim(o.volume, corev1.EventTypeWarning, protocol.Provisioning, fmt.Sprintf("PavProvisioner %q: creation: %s", o.volume.Spec.Provisioner, workflow.UnexpectedError(pod, result.Error)))
	}
	return r.goOn(ctx, o.volume)
}

// goOn writes the PersistentVolume of a volume whose handle was just recorded. Volume is the object as it was written.
func (r *Reconciler) goOn(ctx context.Context, volume *pavv1.PavVolume) error {
	o, err := r.gather(ctx, volume)
	if err != nil {
		return err
	}
	d := decide(o)
	if d.Step != stepWritePV {
		return nil // the write is an event, and brings the next pass
	}
	ctrl.LoggerFrom(ctx).V(2).Info("decided", observability.Step, d.Step, observability.Rule, d.Rule)
	return r.writePV(ctx, o, d)
}

func (r *Reconciler) made(ctx context.Context, o observation, pod *corev1.Pod) (podplan.VolumeOutcome, error) {
	if err := r.checkOwner(ctx, o); err != nil {
		return podplan.VolumeOutcome{}, err
	}
	s, err := podplan.RequestedOf(o.volume)
	if err != nil {
		return podplan.VolumeOutcome{}, err
	}
	result, err := workflow.ResultOf(pod)
	if err != nil {
		return podplan.VolumeOutcome{}, &podplan.Error{Err: err}
	}
	requested := s.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	creation := &podplan.Creation{DefaultHandle: protocol.VolumeName(o.volume.Spec.ClaimRef.UID), Requested: requested.Value()}
	if p := o.volume.Status.Plan; p != nil {
		creation.Handle = p.Handle
		if p.Capacity != nil {
			creation.Capacity = p.Capacity.Value()
		}
	}
	made, err := creation.Outcome(result)
	if err != nil {
		return podplan.VolumeOutcome{}, err
	}
	return made, r.reserve(ctx, o, "the creation pod's /pav/handle", made.Handle)
}

// errInUse is wrapped by errors about handles of storage that other objects use.
var errInUse = errors.New("already in use")

// reserve reserves a handle for a volume. Two volumes with one handle would be the same storage, so a handle that is in
// use is a podplan.Error, and errInUse. Its text begins with the source of the handle.
func (r *Reconciler) reserve(ctx context.Context, o observation, source, handle string) error {
	volume := o.volume
	if r.handles.Reserve(reconcile.Storage(volume.Spec.Provisioner, handle), volume.Name) != volume.Name {
		return reconcile.ErrStale // the cache will show whose it is, or that it is free
	}
	holders, err := reconcile.Holders(ctx, r.Client, o.storage(handle))
	if err == nil {
		if others := o.besides(handle, holders); len(others) > 0 {
			err = &podplan.Error{Err: fmt.Errorf("%s: the handle %q is %w by %s", source, handle, errInUse, describe(others[0]))}
		}
	}
	if err != nil {
		r.handles.Release(volume.Name)
	}
	return err
}
