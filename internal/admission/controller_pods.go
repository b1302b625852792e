package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// controllerPodsPath is the path of the webhook for pods of the controller agent; deployment.yaml has it as well.
const controllerPodsPath = "/validate-controller-pod"

// ControllerPodHandler answers requests of the controller agent to create pods that have rights on their nodes.
//
// The agent's token may be stolen, and with it all that the agent may write: every PavVolume and PavSnapshot, and every record of
// a bucket or an access. What it cannot write are definitions. So a pod may have only such rights as the definition, as it is now, plans for a pod of its workflow. The
// definition that a PavVolume has recorded of an attempt in progress does not count: an attempt whose pod the present
// definition does not plan fails, and the next one begins with the current definition.
type ControllerPodHandler struct {
	// Client reads the API server, not a cache.
	Client client.Reader

	// Templates evaluates definitions.
	Templates *template.Evaluator

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults
}

// Handle implements admission.Handler.
func (h *ControllerPodHandler) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.DryRun != nil && *request.DryRun {
		return admission.Allowed("") // such as those of a check of a definition; it creates nothing
	}
	return answer(ctx, request, func(ctx context.Context, pod *corev1.Pod, _ map[string]any) error { return h.judge(ctx, pod) })
}

// judge checks a pod of the controller agent.
func (h *ControllerPodHandler) judge(ctx context.Context, pod *corev1.Pod) error {
	rights := workflow.NodeRights(&pod.Spec)
	if len(rights) == 0 {
		return nil
	}
	owner, err := h.ownerOf(ctx, pod)
	if err != nil {
		return err
	}
	provisioner, err := h.provisionerOf(ctx, owner)
	if err != nil {
		return err
	}
	kind := pod.Labels[pavv1.WorkflowLabel]
	plans, err := h.plans(ctx, provisioner, owner, kind)
	if err != nil {
		return err
	}
	for _, plan := range plans {
		if err = checkPlan(provisioner.Name, owner.GetName(), kind, rights, plan); err == nil {
			return nil
		}
	}
	return err
}

// podPlan returns a pod that a definition plans, or nil if it plans none.
type podPlan func() (*corev1.Pod, error)

// checkPlan returns why a pod with some rights is not as planned, or nil.
func checkPlan(provisioner, owner, kind string, rights []string, plan podPlan) error {
	planned, err := plan()
	if podplan.IsRefusal(err) {
		return refusePod("PavProvisioner %q plans no pod of the workflow %q: %w", provisioner, kind, err)
	}
	if err != nil {
		return err
	}
	if missing := unplanned(rights, planned); len(missing) > 0 {
		return refusePod("the pod has what PavProvisioner %q does not plan for the workflow %q of %q: %s", provisioner, kind, owner, strings.Join(missing, ", "))
	}
	return nil
}

// unplanned returns the rights that the planned pod, nil if none is planned, does not have.
func unplanned(rights []string, planned *corev1.Pod) []string {
	if planned == nil {
		return rights
	}
	known := workflow.NodeRights(&planned.Spec)
	return slices.DeleteFunc(slices.Clone(rights), func(right string) bool { return slices.Contains(known, right) })
}

// ownerOf returns the record that a pod works for.
func (h *ControllerPodHandler) ownerOf(ctx context.Context, pod *corev1.Pod) (client.Object, error) {
	ref, err := ownerOf(pod, "PavVolume", "PavSnapshot", "PavBucket", "PavBucketAccess")
	if err != nil {
		return nil, refusePod("%w", err)
	}
	owner := map[string]client.Object{
		"PavVolume": &pavv1.PavVolume{}, "PavSnapshot": &pavv1.PavSnapshot{}, "PavBucket": &pavv1.PavBucket{}, "PavBucketAccess": &pavv1.PavBucketAccess{},
	}[ref.Kind]
	if err := h.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, owner); apierrors.IsNotFound(err) {
		return nil, refusePod("%s %q does not exist", ref.Kind, ref.Name)
	} else if err != nil {
		return nil, fmt.Errorf("getting %s %q: %w", ref.Kind, ref.Name, err)
	}
	if owner.GetUID() != ref.UID {
		return nil, refusePod("%s %q is another one by now", ref.Kind, ref.Name)
	}
	return owner, nil
}

// provisionerOf returns the provisioner of a record.
func (h *ControllerPodHandler) provisionerOf(ctx context.Context, owner client.Object) (*pavv1.PavProvisioner, error) {
	name := ""
	switch o := owner.(type) {
	case *pavv1.PavVolume:
		name = o.Spec.Provisioner
	case *pavv1.PavSnapshot:
		name = o.Spec.Provisioner
	case *pavv1.PavBucket:
		name = o.Spec.Provisioner
	case *pavv1.PavBucketAccess:
		name = o.Spec.Provisioner
	}
	provisioner, _, err := get[pavv1.PavProvisioner](ctx, h.Client, pavv1.GroupVersion.String(), "PavProvisioner", client.ObjectKey{Name: name})
	if err == nil && provisioner == nil {
		err = refusePod("PavProvisioner %q does not exist", name)
	}
	return provisioner, err
}

// plans returns what plans the pods of a workflow of a record, with the present definition. A pod must be as one of them.
func (h *ControllerPodHandler) plans(ctx context.Context, provisioner *pavv1.PavProvisioner, owner client.Object, kind string) ([]podPlan, error) {
	switch o := owner.(type) {
	case *pavv1.PavVolume:
		request, err := h.volumeRequest(ctx, provisioner, o, kind)
		return []podPlan{func() (*corev1.Pod, error) { return request.Planned(ctx, &provisioner.Spec, o, kind) }}, err
	case *pavv1.PavSnapshot:
		request := podplan.SnapshotRequest{
			Provisioner: provisioner.UID, Generation: provisioner.Generation, Record: o,
			Templates: h.Templates, Defaults: h.PodDefaults, GetPVC: reconcile.GetPVC(h.Client), Allowed: provisioner.Spec.AllowedClaimNamespaces,
		}
		return []podPlan{func() (*corev1.Pod, error) { return request.Planned(ctx, &provisioner.Spec, kind) }}, nil
	case *pavv1.PavBucket:
		return h.bucketPlans(ctx, provisioner, o, kind)
	case *pavv1.PavBucketAccess:
		return h.accessPlans(ctx, provisioner, o, kind)
	}
	return nil, fmt.Errorf("a %T has no pods", owner)
}

// volumeRequest returns the request from which a definition plans the pods of a workflow: the same objects that the agent
// uses, which for deletion are those that the PavVolume has recorded, if they are gone.
func (h *ControllerPodHandler) volumeRequest(ctx context.Context, provisioner *pavv1.PavProvisioner, volume *pavv1.PavVolume, kind string) (podplan.VolumeRequest, error) {
	request := podplan.VolumeRequest{
		Provisioner: provisioner.UID, Generation: provisioner.Generation, Source: podplan.SourceOf(volume, volume.Status.SourceCapacity),
		Templates: h.Templates, Defaults: h.PodDefaults, GetPVC: reconcile.GetPVC(h.Client), Allowed: provisioner.Spec.AllowedClaimNamespaces,
	}
	ref := volume.Spec.ClaimRef
	changes := kind == pavv1.WorkflowExpansion || kind == pavv1.WorkflowModification
	if volume.Spec.Static && !changes {
		return request, refusePod("PavVolume %q is that of a static volume, which is never created or deleted", volume.Name)
	}
	if changes {
		var err error
		if ref, err = h.user(ctx, volume, &request); err != nil {
			return request, err
		}
	}
	claim, live, err := get[corev1.PersistentVolumeClaim](ctx, h.Client, "v1", "PersistentVolumeClaim", client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil {
		return request, err
	}
	present := claim != nil && claim.UID == ref.UID
	if !present && kind != pavv1.WorkflowDeletion {
		return request, refusePod("the claim %s of PavVolume %q does not exist any more", observability.Name(ref.Namespace, ref.Name), volume.Name)
	}
	if request.Claim = live; !present {
		if request.Claim, err = podplan.RecordedClaim(volume); err != nil {
			return request, refusePod("%w", err)
		}
	}
	if request.Class, err = podplan.RecordedClass(volume); err != nil {
		return request, refusePod("%w", err)
	}
	if err := addAttributes(&request, volume, kind); err != nil {
		return request, refusePod("%w", err)
	}
	if kind == pavv1.WorkflowDeletion {
		if request.Provisioned, err = podplan.RecordedProvisionedClaim(volume); err != nil {
			return request, refusePod("%w", err)
		}
	}
	if name := volume.Status.SelectedNode; name != "" {
		_, request.Node, err = get[corev1.Node](ctx, h.Client, "v1", "Node", client.ObjectKey{Name: name})
	}
	return request, err
}

// addAttributes adds the attributes of a volume to a request.
func addAttributes(request *podplan.VolumeRequest, volume *pavv1.PavVolume, kind string) error {
	attributes := podplan.AttributesAtCreation
	if request.Volume != nil {
		attributes = podplan.Attributes
	}
	has, err := attributes(volume)
	if request.Attributes = has.Parameters; kind == pavv1.WorkflowModification && volume.Status.Modification != nil {
		request.Attributes, request.OldAttributes = volume.Status.Modification.Target.Parameters, has.Parameters
	}
	return err
}

// user adds the PersistentVolume to the request for a change of the volume, and returns the claim that is bound to it, which need not be
// the one that the volume was made for.
func (h *ControllerPodHandler) user(ctx context.Context, volume *pavv1.PavVolume, request *podplan.VolumeRequest) (pavv1.ClaimReference, error) {
	pv, live, err := get[corev1.PersistentVolume](ctx, h.Client, "v1", "PersistentVolume", client.ObjectKey{Name: volume.Name})
	if err != nil {
		return pavv1.ClaimReference{}, err
	}
	if pv == nil || pv.Spec.ClaimRef == nil {
		return pavv1.ClaimReference{}, refusePod("no claim is bound to the PersistentVolume of PavVolume %q", volume.Name)
	}
	request.Volume = live
	return pavv1.ClaimReference{Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name, UID: pv.Spec.ClaimRef.UID}, nil
}
