package podplan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// BucketDefinition is a definition that serves requests for buckets and for access to them.
type BucketDefinition struct {
	// Provisioner and Generation identify the definition, and Spec is all of it.
	Provisioner types.UID
	Generation  int64
	Spec        *pavv1.PavProvisionerSpec

	// Templates and GetPVC evaluate the definition. Foreign, if it is not nil, is called for look-ups of claims in other namespaces
	// than that of the request.
	Templates *template.Evaluator
	GetPVC    template.GetPVC
	Foreign   func(ctx context.Context, name, namespace string, allowed bool)

	// Defaults are those of all workflow pods.
	Defaults workflow.Defaults
}

// evaluate returns the value of a field for a request from a namespace, or nil if the field is absent.
func (d BucketDefinition) evaluate(ctx context.Context, namespace, field string, given *pavv1.Template, vars template.Variables) (any, error) {
	if given == nil {
		return nil, nil
	}
	key := template.Field{Object: d.Provisioner, Generation: d.Generation, Path: field}
	lookups := template.Lookups{Own: namespace, Allowed: d.Spec.AllowedClaimNamespaces, Foreign: d.Foreign}
	return d.Templates.Evaluate(ctx, key, *given, vars, lookups.Restrict(d.GetPVC))
}

// pod returns the value of a pod template, or nil if it is absent.
func (d BucketDefinition) pod(ctx context.Context, namespace, field string, given *pavv1.Template, vars template.Variables) (map[string]any, error) {
	value, err := d.evaluate(ctx, namespace, field, given, vars)
	if err != nil || value == nil {
		return nil, err
	}
	return template.Object(field, value)
}

// text returns the text of a field, or "" if it is absent.
func (d BucketDefinition) text(ctx context.Context, namespace, field string, given *pavv1.Template, vars template.Variables) (string, error) {
	value, err := d.evaluate(ctx, namespace, field, given, vars)
	if err != nil || value == nil {
		return "", err
	}
	return template.Text(field, value)
}

// validation returns spec.bucketValidation with its defaults.
func (d BucketDefinition) validation() pavv1.BucketValidation {
	v := pavv1.BucketValidation{}
	if d.Spec.BucketValidation != nil {
		v = *d.Spec.BucketValidation
	}
	if len(v.Protocols) == 0 {
		v.Protocols = []pavv1.BucketProtocol{pavv1.ProtocolS3}
	}
	if len(v.AuthenticationTypes) == 0 {
		v.AuthenticationTypes = []pavv1.AuthenticationType{pavv1.AuthenticationKey}
	}
	if len(v.AccessModes) == 0 {
		v.AccessModes = []pavv1.BucketAccessMode{pavv1.AccessReadWrite, pavv1.AccessReadOnly}
	}
	v.RequestedNames = cmp.Or(v.RequestedNames, pavv1.RequestedNamesAllow)
	return v
}

// BucketRequest is the request for a bucket, with the definition that serves it.
type BucketRequest struct {
	BucketDefinition

	// Record is the PavBucket. Its copies of objects have text of tenants, which is only used as data.
	Record *pavv1.PavBucket

	// Namespace is the Namespace of the claim as the API server has it; nil if it is gone.
	Namespace map[string]any
}

// isExisting reports whether the bucket exists already, so that PaV neither creates nor deletes it.
func (r BucketRequest) isExisting() bool { return r.Record.Spec.ExistingBucketID != "" }

// bucket returns the request as the contexts of templates are made from it.
func (r BucketRequest) bucket() (template.Bucket, error) {
	spec := &r.Record.Spec
	claim, err := copyOf(r.Record, "PavBucket", "spec.claim", spec.Claim)
	if err != nil {
		return template.Bucket{}, err
	}
	class, err := copyOf(r.Record, "PavBucket", "spec.class", spec.Class)
	if err != nil {
		return template.Bucket{}, err
	}
	quota, err := r.quota()
	if err != nil {
		return template.Bucket{}, err
	}
	v := r.validation()
	b := template.Bucket{
		Name: spec.BucketName, Protocols: stringsOf(orElse(spec.Protocols, v.Protocols)), Params: spec.Parameters, AdditionalConfig: map[string]string{},
		Objects: quota.Objects, Claim: claim, Class: class, Namespace: namespaceOf(r.Namespace, spec.ClaimRef.Namespace),
		IsExisting: r.isExisting(), IsNameRequested: spec.NameRequested,
	}
	if quota.Size != nil {
		b.Size = new(quota.Size.Value())
	}
	for key, value := range spec.AdditionalConfig {
		if slices.Contains(v.AdditionalConfig, key) {
			b.AdditionalConfig[key] = value
		}
	}
	return b, nil
}

// creationVariables returns the context of bucketValidation and bucketCreation.
func (r BucketRequest) creationVariables() (template.Variables, error) {
	b, err := r.bucket()
	if err != nil {
		return nil, err
	}
	return template.BucketVariables(b), nil
}

// IsOfClaim reports whether a bucket certainly is that of a record's claim: PaV chose its name, and its identifier has the UID of the
// claim. An identifier from elsewhere may be anybody's.
func IsOfClaim(record *pavv1.PavBucket, id string) bool {
	spec := &record.Spec
	return spec.ExistingBucketID == "" && !spec.NameRequested && spec.ClaimRef.UID != "" && strings.Contains(id, string(spec.ClaimRef.UID))
}

// bucketID returns what identifies a bucket in its store, as far as that is known.
func bucketID(record *pavv1.PavBucket) string {
	return cmp.Or(record.Status.BucketID, record.Spec.ExistingBucketID, record.Status.PlannedBucketID, record.Spec.BucketName)
}

// orElse returns the first list that is not empty.
func orElse[T any](first, second []T) []T {
	if len(first) > 0 {
		return first
	}
	return second
}

// stringsOf returns values of a type of strings as strings.
func stringsOf[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, value := range values {
		list[i] = string(value)
	}
	return list
}

// namespaceOf returns a Namespace as templates have it: if it is gone, it has only its name.
func namespaceOf(live map[string]any, name string) map[string]any {
	if live != nil {
		return live
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
}

// checkText returns why a text of the definition cannot be recorded, or nil.
func checkText(field, text string, longest int) error {
	if len(text) > longest {
		return &template.Error{Field: field, Err: fmt.Errorf("has %d bytes, and may have %d at most", len(text), longest)}
	}
	return nil
}
