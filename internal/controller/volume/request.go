package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
)

// provisioningRequest returns the request that a definition provisions: the claim as the API server has it now, the recorded
// StorageClass, and the selected node, if any. If the claim does not wait for the volume any more, the error is
// reconcile.ErrStale, as the cache is behind.
func (r *Reconciler) provisioningRequest(ctx context.Context, o observation, d *pavv1.VolumeDefinition, node string) (podplan.VolumeRequest, error) {
	volume := o.volume
	claim, err := reconcile.ReadClaim(ctx, r.Live, claimKey(volume))
	if err != nil {
		return podplan.VolumeRequest{}, err
	}
	if claim == nil || claim.GetUID() != volume.Spec.ClaimRef.UID || claim.GetDeletionTimestamp() != nil {
		return podplan.VolumeRequest{}, reconcile.ErrStale
	}
	if _, _, err := requestedOf(volume); err != nil {
		return podplan.VolumeRequest{}, err
	}
	request, err := r.requestOf(o, claim.Object)
	if err != nil {
		return request, err
	}
	request.Provisioner, request.Generation = d.UID, d.Generation
	if node == "" {
		return request, nil
	}
	if request.Node, err = r.readNode(ctx, node); err == nil && request.Node == nil {
		err = &podplan.NodeError{Err: &podplan.Error{Err: fmt.Errorf("node %q, which the scheduler selected for the claim's first consumer, does not exist any more", node)}}
	}
	return request, err
}

// validatedRequest is provisioningRequest for an attempt that has begun. If the claim has changed since, the error is a
// podplan.Error: the creation pod must get the claim that the validation pod saw.
func (r *Reconciler) validatedRequest(ctx context.Context, o observation) (podplan.VolumeRequest, error) {
	status := &o.volume.Status
	request, err := r.provisioningRequest(ctx, o, status.Definition, status.SelectedNode)
	if err != nil {
		return request, err
	}
	return request, podplan.CheckUnchanged(status.ProvisionedClaim, request.Claim)
}

// deletionRequest returns the request that the current definition deletes or reverts. If the claim is gone, or was replaced,
// it has the recorded copy.
func (r *Reconciler) deletionRequest(ctx context.Context, o observation) (podplan.VolumeRequest, error) {
	live, err := reconcile.ReadClaim(ctx, r.Live, claimKey(o.volume))
	if err != nil {
		return podplan.VolumeRequest{}, err
	}
	claim, err := podplan.RecordedClaim(o.volume)
	if err != nil {
		return podplan.VolumeRequest{}, err
	}
	if live != nil && live.GetUID() == o.volume.Spec.ClaimRef.UID {
		claim = live.Object
	}
	request, err := r.requestOf(o, claim)
	if err != nil {
		return request, err
	}
	if request.Provisioned, err = podplan.RecordedProvisionedClaim(o.volume); err != nil {
		return request, err
	}
	request.Provisioner, request.Generation = o.provisioner.UID, o.provisioner.Generation
	// The node for which the volume was created, if it still exists.
	if name := o.volume.Status.SelectedNode; name != "" {
		request.Node, err = r.readNode(ctx, name)
	}
	return request, err
}

func (r *Reconciler) requestOf(o observation, claim map[string]any) (podplan.VolumeRequest, error) {
	class, err := podplan.RecordedClass(o.volume)
	if err != nil {
		return podplan.VolumeRequest{}, err
	}
	attributes, err := podplan.AttributesAtCreation(o.volume)
	if err != nil {
		return podplan.VolumeRequest{}, err
	}
	request := podplan.VolumeRequest{Claim: claim, Class: class, Attributes: attributes.Parameters, Templates: r.Templates, GetPVC: reconcile.GetPVC(r.Live), Source: podplan.SourceOf(o.volume, o.volume.Status.SourceCapacity)}
	if o.provisioner != nil {
		request.Allowed = o.provisioner.Spec.AllowedClaimNamespaces
	}
	request.Foreign = func(_ context.Context, name, namespace string, allowed bool) {
		r.reportLookup(o.volume, template.ForeignLookup(o.volume.Spec.Provisioner, name, namespace, o.volume.Spec.ClaimRef.Namespace, allowed), allowed)
	}
	return request, nil
}

// reportLookup reports to the administrator that a definition looks up claims of another namespace: a tenant may have chosen
// the namespace.
func (r *Reconciler) reportLookup(volume *pavv1.PavVolume, message string, allowed bool) {
	if due, _ := r.repeats.Due(volume.Name, message, r.Now()); !due {
		return
	}
	eventType := corev1.EventTypeNormal
	if !allowed {
		eventType = corev1.EventTypeWarning
	}
	r.Events.Event(volume, eventType, protocol.ForeignClaim, observability.Clip(message, observability.MaxNote))
}

// readNode returns a Node as the API server has it, or nil if there is none.
func (r *Reconciler) readNode(ctx context.Context, name string) (map[string]any, error) {
	node, err := reconcile.ReadObject(ctx, r.Live, corev1.SchemeGroupVersion.WithKind("Node"), types.NamespacedName{Name: name})
	if err != nil || node == nil {
		return nil, err
	}
	return node.Object, nil
}

// returnNode lets the scheduler choose another node for the claim's first consumer, as external-provisioner does if a volume
// cannot be created for the selected node.
func (r *Reconciler) returnNode(ctx context.Context, o observation, _ decision) error {
	claim, err := reconcile.ReadClaim(ctx, r.Live, claimKey(o.volume))
	if err != nil {
		return err
	}
	node := o.volume.Status.SelectedNode
	// If the scheduler selects the same node again, the volume is tried there again.
	forget := func(status *pavv1.PavVolumeStatus) { status.SelectedNode = "" }
	if claim == nil || claim.GetUID() != o.volume.Spec.ClaimRef.UID || claim.GetAnnotations()[protocol.SelectedNode] != node {
		return r.patchStatus(ctx, o.volume, forget)
	}
	changed := claim.DeepCopy()
	annotations := changed.GetAnnotations()
	delete(annotations, protocol.SelectedNode)
	changed.SetAnnotations(annotations)
	if err := r.patch(ctx, claim, changed); err != nil {
		return err
	}
	r.Events.Eventf(claimObject(o.volume), corev1.EventTypeNormal, protocol.Provisioning,
		"the volume cannot be provisioned for node %s: the scheduler can select another one", node)
	return r.patchStatus(ctx, o.volume, forget)
}

// requestedOf returns what a volume was requested with, and the parameters of its class, without those of the CSI specification. The error
// is a podplan.Error if the parameters are wrong.
func requestedOf(volume *pavv1.PavVolume) (podplan.Requested, map[string]string, error) {
	requested, err := podplan.RequestedOf(volume)
	if err != nil {
		return requested, nil, err
	}
	parameters, _, err := podplan.Parameters(&requested.Class)
	if err != nil {
		return requested, nil, &podplan.Error{Err: err}
	}
	return requested, parameters, nil
}
