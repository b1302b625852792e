package stage

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// build evaluates a pod template in a context and fences the pod. There may be no validation pod: nil.
func (t *task) build(ctx context.Context, kind string, field template.Field, definition pavv1.Template, vars template.Variables, attempt int32) (*corev1.Pod, error) {
	evaluated, err := t.templates.Evaluate(ctx, field, definition, vars, t.getPVC)
	if err != nil || evaluated == nil && kind == pavv1.WorkflowValidation {
		return nil, err
	}
	rendered, err := template.Object(field.Path, evaluated)
	if err != nil {
		return nil, err
	}
	pod, err := workflow.Build(field.Path, rendered, t.fence(kind, attempt))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return pod, nil
}

// fieldOf names a field of a provisioner.
func fieldOf(provisioner *pavv1.PavProvisioner, path string) template.Field {
	return template.Field{Object: provisioner.UID, Generation: provisioner.Generation, Path: path}
}

func (t *task) fence(kind string, attempt int32) workflow.Fence {
	spec := &t.stage.Spec
	number := strconv.Itoa(int(attempt))
	return workflow.Fence{
		Workflow: kind,
		Name:     workflow.Name(kind, string(t.stage.UID), number),
		Owner: metav1.OwnerReference{
			APIVersion: pavv1.GroupVersion.String(), Kind: "PavStage", Name: t.stage.Name, UID: t.stage.UID, Controller: new(true),
		},
		Labels: map[string]string{
			pavv1.ProvisionerLabel: spec.Provisioner,
			pavv1.VolumeLabel:      workflow.Hash(spec.VolumeName),
			pavv1.NodeLabel:        workflow.Hash(spec.NodeName),
			pavv1.StageLabel:       t.stage.Name,
		},
		Annotations: map[string]string{
			pavv1.VolumeAnnotation:  spec.VolumeName,
			pavv1.HandleAnnotation:  spec.VolumeHandle,
			pavv1.NodeAnnotation:    spec.NodeName,
			pavv1.AttemptAnnotation: number,
		},
		Node: spec.NodeName,
	}
}

// variables returns the context of staging and unstaging. Where the volume or the claim has gone, or
// another one has its name, the PavStage's copy stands in.
func (t *task) variables(ctx context.Context) (template.Variables, error) {
	spec := &t.stage.Spec
	volume, err := t.currentVolume(ctx)
	if err != nil {
		return nil, err
	}
	claim, err := t.currentOr(ctx, "PersistentVolumeClaim", client.ObjectKey{Namespace: spec.ClaimRef.Namespace, Name: spec.ClaimRef.Name}, spec.Claim)
	if err != nil {
		return nil, err
	}
	rawNode, err := t.read(ctx, "Node", client.ObjectKey{Name: spec.NodeName}, nil)
	if err != nil {
		return nil, err
	}
	node, err := object(rawNode)
	if err != nil {
		return nil, err
	}
	return template.StagingVariables(volume, claim, node, spec.ReadOnly)
}

// currentVolume returns the volume, or the PavStage's copy.
func (t *task) currentVolume(ctx context.Context) (map[string]any, error) {
	return t.currentOr(ctx, "PersistentVolume", client.ObjectKey{Name: t.stage.Spec.VolumeName}, t.stage.Spec.Volume)
}

func (t *task) currentOr(ctx context.Context, kind string, key client.ObjectKey, recorded apiextensionsv1.JSON) (map[string]any, error) {
	copied, err := object(recorded)
	if err != nil {
		return nil, err
	}
	raw, err := t.read(ctx, kind, key, nil)
	if apierrors.IsNotFound(err) {
		return copied, nil
	}
	if err != nil {
		return nil, err
	}
	current, err := object(raw)
	if err != nil {
		return nil, err
	}
	if uid(current) != uid(copied) {
		return copied, nil
	}
	return current, nil
}

func uid(object map[string]any) string {
	value, _, _ := unstructured.NestedString(object, "metadata", "uid")
	return value
}

func object(raw apiextensionsv1.JSON) (map[string]any, error) {
	value, err := template.Decode(raw)
	if err != nil {
		return nil, err
	}
	return template.Object("", value)
}

// getPVC serves the template function get_pvc.
func (s *Stager) getPVC(ctx context.Context, name, namespace string) (map[string]any, error) {
	raw, err := s.read(ctx, "PersistentVolumeClaim", client.ObjectKey{Namespace: namespace, Name: name}, nil)
	if apierrors.IsNotFound(err) {
		return nil, template.ErrNoClaim
	}
	if err != nil {
		return nil, err
	}
	return object(raw)
}
