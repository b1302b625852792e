package podplan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// StageRequest evaluates a definition.
type StageRequest struct {
	// Provisioner has the definition.
	Provisioner *pavv1.PavProvisioner

	// Templates and GetPVC evaluate it. Foreign, if it is not nil, is called for look-ups in other namespaces than
	// that of the volume's claim, with whether the definition allows them.
	Templates *template.Evaluator
	GetPVC    template.GetPVC
	Foreign   func(ctx context.Context, name, namespace string, allowed bool)

	// Defaults are those of all workflow pods.
	Defaults workflow.Defaults
}

// StageObjects are the objects that the templates of staging and unstaging see, as the API server returned them.
type StageObjects struct {
	Volume, Claim, Node map[string]any

	// Provisioned is the claim that the volume was created for, as it was then; nil if there was none.
	Provisioned map[string]any

	// Bucket is the bucket that the volume is; nil if it is none.
	Bucket *pavv1.VolumeBucket
}

// staging returns the objects as the contexts of templates are made from them.
func (o StageObjects) staging() template.StagingObjects {
	objects := template.StagingObjects{Volume: o.Volume, Claim: o.Claim, Provisioned: o.Provisioned, Node: o.Node}
	if b := o.Bucket; b != nil {
		objects.Bucket = template.BucketVolumeVariable(b.ID, b.Info, b.SecretName)
	}
	return objects
}

// Validate checks a statically provisioned volume, as far as that needs no pod.
func (r StageRequest) Validate(ctx context.Context, volume map[string]any) error {
	vars, err := template.StaticValidationVariables(volume)
	if err != nil {
		return &Error{err}
	}
	own, _, _ := unstructured.NestedString(volume, "spec", "claimRef", "namespace")
	return CheckSupported(ctx, r.evaluator(own), r.Provisioner.Spec.VolumeValidation, vars, ForPersistentVolume)
}

// Validation returns the validation pod of a statically provisioned volume, or nil if there is none.
func (r StageRequest) Validation(ctx context.Context, stage *pavv1.PavStage, volume map[string]any) (*corev1.Pod, error) {
	v := r.Provisioner.Spec.VolumeValidation
	if v == nil || v.PodTemplate == nil {
		return nil, nil
	}
	vars, err := template.StaticValidationVariables(volume)
	if err != nil {
		return nil, &Error{err}
	}
	value, err := r.evaluator(stage.Spec.ClaimRef.Namespace)(ctx, ValidationPod, v.PodTemplate, vars)
	if err != nil || value == nil {
		return nil, err
	}
	return r.build(stage, pavv1.WorkflowValidation, ValidationPod, value, stage.Status.Attempt)
}

// errUnprivileged rejects a device of an unprivileged pod: most containers may create device files, and such a file
// could refer to any disk of the node.
var errUnprivileged = errors.New("a block volume is served only of a staging pod with a privileged container: set securityContext.privileged of the container that makes /pav/volume")

// isPrivileged reports whether a container of a pod is privileged.
func isPrivileged(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
		return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
	})
}

// Staging returns the staging pod. If it has references, or if the unstaging pod has some or they are not known yet,
// the pod has an annotation that requests a check by the webhook: unstaging must not depend on a client, which is
// gone by then. It has the annotation even if the webhook would check it anyway, as defaults and other webhooks may
// remove the references.
func (r StageRequest) Staging(ctx context.Context, stage *pavv1.PavStage, o StageObjects) (*corev1.Pod, error) {
	pod, err := r.pod(ctx, stage, pavv1.WorkflowStaging, StagingPod, &r.Provisioner.Spec.VolumeStaging.PodTemplate, o, stage.Status.Attempt)
	if err == nil && stage.Spec.VolumeMode == corev1.PersistentVolumeBlock && !isPrivileged(&pod.Spec) {
		return nil, &Error{fmt.Errorf("%s.spec.containers: %w", StagingPod, errUnprivileged)}
	}
	if err != nil || stage.Annotations[pavv1.AdmittedAnnotation] != "" {
		return pod, err
	}
	if hasNoReferences(pod) {
		unstaging, err := r.Unstaging(ctx, stage, o, 1)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err == nil && (unstaging == nil || hasNoReferences(unstaging)) {
			return pod, nil
		}
	}
	pod.Annotations[pavv1.AdmitAnnotation] = "true"
	return pod, nil
}

// Planned returns the references that the pods of a stage may have according to the definition. A template that
// cannot be evaluated plans no pod. Account looks up a service account; nil if there is none.
func (r StageRequest) Planned(ctx context.Context, stage *pavv1.PavStage, o StageObjects, account Account) (References, error) {
	planned := References{}
	for _, plan := range []func() (*corev1.Pod, error){
		func() (*corev1.Pod, error) { return r.Validation(ctx, stage, o.Volume) },
		func() (*corev1.Pod, error) { return r.Staging(ctx, stage, o) },
		func() (*corev1.Pod, error) { return r.Unstaging(ctx, stage, o, 1) },
		func() (*corev1.Pod, error) { return r.NodeExpansion(ctx, stage, o, 1, capacityOf(o.Volume)) },
	} {
		pod, err := plan()
		if IsRefusal(err) || err == nil && pod == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := planned.plan(ctx, pod, account); err != nil {
			return nil, err
		}
	}
	return planned, nil
}

// Unstaging returns an unstaging pod, or nil if there is none.
func (r StageRequest) Unstaging(ctx context.Context, stage *pavv1.PavStage, o StageObjects, attempt int32) (*corev1.Pod, error) {
	u := r.Provisioner.Spec.VolumeUnstaging
	if u == nil || u.PodTemplate == nil {
		return nil, nil
	}
	return r.pod(ctx, stage, pavv1.WorkflowUnstaging, UnstagingPod, u.PodTemplate, o, attempt)
}

// NodeExpansion returns a pod that makes a capacity, in bytes, available on the stage's node, or nil if nodes have nothing to do.
func (r StageRequest) NodeExpansion(ctx context.Context, stage *pavv1.PavStage, o StageObjects, attempt int32, newCapacity int64) (*corev1.Pod, error) {
	e := r.Provisioner.Spec.VolumeExpansion
	if e == nil || e.NodePodTemplate == nil {
		return nil, nil
	}
	vars, err := template.NodeExpansionVariables(o.staging(), stage.Spec.ReadOnly, newCapacity)
	if err != nil {
		return nil, err
	}
	value, err := r.evaluator(stage.Spec.ClaimRef.Namespace)(ctx, NodeExpansionPod, e.NodePodTemplate, vars)
	if err != nil || value == nil {
		return nil, err
	}
	return r.build(stage, pavv1.WorkflowNodeExpansion, NodeExpansionPod, value, attempt)
}

// capacityOf returns the capacity of a PersistentVolume, in bytes, which kubelet asks a node to make available.
func capacityOf(volume map[string]any) int64 {
	capacity, err := resource.ParseQuantity(TextAt(volume, "spec", "capacity", "storage"))
	if err != nil {
		return 0
	}
	return capacity.Value()
}

func (r StageRequest) pod(ctx context.Context, stage *pavv1.PavStage, kind, field string, definition *pavv1.Template, o StageObjects, attempt int32) (*corev1.Pod, error) {
	vars, err := template.StagingVariables(o.staging(), stage.Spec.ReadOnly)
	if err != nil {
		return nil, err
	}
	value, err := r.evaluator(stage.Spec.ClaimRef.Namespace)(ctx, field, definition, vars)
	if err != nil {
		return nil, err
	}
	return r.build(stage, kind, field, value, attempt)
}

// evaluator returns the Evaluate function of the definition for a claim of the namespace.
func (r StageRequest) evaluator(own string) func(context.Context, string, *pavv1.Template, template.Variables) (any, error) {
	lookups := template.Lookups{Own: own, Allowed: r.Provisioner.Spec.AllowedClaimNamespaces, Foreign: r.Foreign}
	getPVC := lookups.Restrict(r.GetPVC)
	return func(ctx context.Context, path string, definition *pavv1.Template, vars template.Variables) (any, error) {
		field := template.Field{Object: r.Provisioner.UID, Generation: r.Provisioner.Generation, Path: path}
		return r.Templates.Evaluate(ctx, field, *definition, vars, getPVC)
	}
}

// ProvisionedClaim returns the claim that a volume was created for, as it was then, from the record of the volume;
// nil if the record is that of another volume, or the volume was not created for a claim.
func ProvisionedClaim(record *pavv1.PavVolume, driver, handle string) *apiextensionsv1.JSON {
	if record == nil || record.Spec.Static || !record.IsOf(driver, handle) {
		return nil
	}
	raw, _ := provisionedClaim(record)
	return raw
}

// BucketOf returns what staging needs to know of the bucket that a volume is, from the record of the volume; nil if the record is that of
// another volume, or the volume is no bucket, or has no access to it.
func BucketOf(record *pavv1.PavVolume, driver, handle string) *pavv1.VolumeBucket {
	if record == nil || record.Spec.BucketRef == nil || !record.IsOf(driver, handle) {
		return nil
	}
	return record.Status.Bucket
}

// buildStagePod returns the pod of an evaluated template with its PodPolicy.
func (r StageRequest) build(stage *pavv1.PavStage, kind, field string, value any, attempt int32) (*corev1.Pod, error) {
	rendered, err := template.Object(field, value)
	if err != nil {
		return nil, err
	}
	policy := stagePodPolicy(stage, kind, attempt)
	policy.Defaults = r.Defaults
	pod, err := workflow.Build(field, rendered, policy)
	if err != nil {
		return nil, &Error{err}
	}
	return pod, nil
}
