package reconcile

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/template"
)

// Optional returns the object of the key, or nil if there is none.
func Optional[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, object T) (T, error) {
	var none T
	err := reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %T %q: %w", object, key.Name, err)
	}
	return object, nil
}

// ReadObject returns an object with all of its fields, without what notes who wrote them; nil if there is none. The name may be any text
// of a tenant: the client rejects invalid names before it asks the API server.
func ReadObject(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	for _, part := range []string{key.Namespace, key.Name} {
		if len(content.IsPathSegmentName(part)) > 0 {
			return nil, nil
		}
	}
	if key.Name == "" || key.Namespace == "" && kind.Kind == "PersistentVolumeClaim" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kind.Kind, key.Name, err)
	}
	object.SetManagedFields(nil)
	return object, nil
}

// ReadClaim returns a claim with all of its fields, or nil if there is none.
func ReadClaim(ctx context.Context, reader client.Reader, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return ReadObject(ctx, reader, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), key)
}

// GetPVC returns the template function of that name, which reads from the API server.
func GetPVC(live client.Reader) template.GetPVC {
	return func(ctx context.Context, name, namespace string) (map[string]any, error) {
		claim, err := ReadClaim(ctx, live, types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil {
			return nil, err
		}
		if claim == nil {
			return nil, template.ErrNoClaim
		}
		return claim.Object, nil
	}
}
