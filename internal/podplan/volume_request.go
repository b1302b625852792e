package podplan

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Error is why a volume cannot be provisioned or staged until the claim, its StorageClass, the PersistentVolume, the
// definition, or a pod is changed. Its text is for the user who wrote the claim.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func refuse(format string, args ...any) error {
	return &Error{fmt.Errorf(format, args...)}
}

// IsRefusal reports whether err is about the request or its definition. All other errors are those of the API server,
// and pass by themselves.
func IsRefusal(err error) bool {
	var refusal *Error
	var mistake *template.Error
	return errors.As(err, &refusal) || errors.As(err, &mistake)
}

// VolumeRequest is a claim's request for a volume. The objects are as the API server returned them; they have text of
// tenants, which is only used as data.
type VolumeRequest struct {
	// Provisioner and Generation identify the definition.
	Provisioner types.UID
	Generation  int64

	// Claim, Class and Node are the PersistentVolumeClaim, its StorageClass and the Node that the scheduler selected
	// for the claim's first consumer; Node is nil if it selected none.
	Claim, Class, Node map[string]any

	// Source is what the volume is created from; nil if it is created empty.
	Source *pavv1.DataSource

	// Volume is the PersistentVolume, and StagedOn are the names of the nodes that have it staged; only for expansion and
	// modification.
	Volume   map[string]any
	StagedOn []string

	// Attributes are those with which the volume is created or, for modification, those that it is to have; OldAttributes are those
	// that it has then.
	Attributes, OldAttributes map[string]string

	// Provisioned is the claim as it was when the volume was created; only for deletion.
	Provisioned map[string]any

	// Templates and GetPVC evaluate the definition. Allowed are the namespaces in which it may look up claims,
	// besides the claim's; nil for all. Foreign, if it is not nil, is called for look-ups in other namespaces.
	Templates *template.Evaluator
	GetPVC    template.GetPVC
	Allowed   []string
	Foreign   func(ctx context.Context, name, namespace string, allowed bool)

	// Defaults are those of all workflow pods.
	Defaults workflow.Defaults
}

// requested returns the request as the contexts of templates are made from it.
func (r VolumeRequest) requested() template.Request {
	return template.Request{Claim: r.Claim, Class: r.Class, Node: r.Node, Attributes: r.Attributes, Source: sourceVariable(r.Source)}
}

// evaluate returns the value of a field, or nil if it is absent.
func (r VolumeRequest) evaluate(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (any, error) {
	if given == nil {
		return nil, nil
	}
	key := template.Field{Object: r.Provisioner, Generation: r.Generation, Path: field}
	own, _, _ := unstructured.NestedString(r.Claim, "metadata", "namespace")
	lookups := template.Lookups{Own: own, Allowed: r.Allowed, Foreign: r.Foreign}
	return r.Templates.Evaluate(ctx, key, *given, vars, lookups.Restrict(r.GetPVC))
}

// pod returns the value of a pod template, or nil if it is absent.
func (r VolumeRequest) pod(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (map[string]any, error) {
	value, err := r.evaluate(ctx, field, given, vars)
	if err != nil || value == nil {
		return nil, err
	}
	return template.Object(field, value)
}

// The fields of pod templates, for errors.
const (
	ValidationPod = "spec.volumeValidation.podTemplate"
	CreationPod   = "spec.volumeCreation.podTemplate"
	ExpansionPod  = "spec.volumeExpansion.podTemplate"
	DeletionPod   = "spec.volumeDeletion.podTemplate"

	ModificationPod     = "spec.volumeModification.podTemplate"
	SnapshotCreationPod = "spec.snapshotCreation.podTemplate"
	SnapshotDeletionPod = "spec.snapshotDeletion.podTemplate"

	BucketValidationPod = "spec.bucketValidation.podTemplate"
	BucketCreationPod   = "spec.bucketCreation.podTemplate"
	BucketUpdatePod     = "spec.bucketUpdate.podTemplate"
	BucketDeletionPod   = "spec.bucketDeletion.podTemplate"

	GrantPod      = "spec.bucketAccessGrant.podTemplate"
	RevocationPod = "spec.bucketAccessRevoke.podTemplate"

	StagingPod   = "spec.volumeStaging.podTemplate"
	UnstagingPod = "spec.volumeUnstaging.podTemplate"

	NodeExpansionPod = "spec.volumeExpansion.nodePodTemplate"
)

// Deletion returns the evaluated template of the deletion pod; nil if there is none. Handle is the volume's handle;
// "" if no handle is known to be its own.
func (r VolumeRequest) Deletion(ctx context.Context, d *pavv1.VolumeDeletion, handle string) (map[string]any, error) {
	if d == nil || d.PodTemplate == nil {
		return nil, nil
	}
	vars, err := template.DeletionVariables(r.requested(), r.Provisioned, handle)
	if err != nil {
		return nil, &Error{err}
	}
	return r.pod(ctx, DeletionPod, d.PodTemplate, vars)
}
