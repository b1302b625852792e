package stage

import (
	"context"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/stageplan"
	"github.com/albertofaria/pav/internal/template"
)

// definition returns what evaluates a provisioner's templates.
func (s *Stager) definition(provisioner *pavv1.PavProvisioner) stageplan.Request {
	return stageplan.Request{Provisioner: provisioner, Templates: s.templates, GetPVC: s.getPVC}
}

// objects returns what the templates of staging and unstaging see. Where the volume or the claim has gone, or
// another one has its name, the PavStage's copy stands in.
func (t *task) objects(ctx context.Context) (stageplan.Objects, error) {
	spec := &t.stage.Spec
	volume, err := t.currentVolume(ctx)
	if err != nil {
		return stageplan.Objects{}, err
	}
	claim, err := t.currentOr(ctx, "PersistentVolumeClaim", client.ObjectKey{Namespace: spec.ClaimRef.Namespace, Name: spec.ClaimRef.Name}, spec.Claim)
	if err != nil {
		return stageplan.Objects{}, err
	}
	rawNode, err := t.read(ctx, "Node", client.ObjectKey{Name: spec.NodeName}, nil)
	if err != nil {
		return stageplan.Objects{}, err
	}
	node, err := object(rawNode)
	if err != nil {
		return stageplan.Objects{}, err
	}
	return stageplan.Objects{Volume: volume, Claim: claim, Node: node}, nil
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
