package bucketapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
)

// Optional returns the object of a key, or nil if there is none. The name may be any text of a tenant, also one that no object can have.
func Optional[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, object T) (T, error) {
	var none T
	if key.Name == "" || len(content.IsPathSegmentName(key.Name)) > 0 {
		return none, nil
	}
	return reconcile.Optional(ctx, reader, key, object)
}

// Named is Optional for objects of the cluster.
func Named[T client.Object](ctx context.Context, reader client.Reader, name string, object T) (T, error) {
	return Optional(ctx, reader, types.NamespacedName{Name: name}, object)
}

// existsDelay is how long to wait for the cache to show a record that exists, at most.
const existsDelay = 10 * time.Second

// CreateRecord writes a record. The error is a refusal if the API server does not take it: tenants chose parts of it.
func CreateRecord(ctx context.Context, writer client.Client, record client.Object) error {
	err := writer.Create(ctx, record)
	switch {
	case apierrors.IsAlreadyExists(err):
		return &reconcile.Later{After: existsDelay}
	case apierrors.IsInvalid(err):
		return &podplan.Error{Err: fmt.Errorf("the API server does not accept what is asked for: %w", err)}
	case err != nil:
		return fmt.Errorf("creating %T %q: %w", record, record.GetName(), err)
	default:
		return nil
	}
}

// Patch writes what changed of an object besides its status, unless someone else wrote it meanwhile.
func Patch(ctx context.Context, writer client.Client, before, after client.Object) error {
	err := writer.Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return AboutPatch(before, err)
}

// LetGo removes a finalizer from an object, unless someone else wrote it meanwhile.
func LetGo(ctx context.Context, writer client.Client, object client.Object, finalizer string) error {
	free, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("the copy of %T %q is no object", object, object.GetName())
	}
	controllerutil.RemoveFinalizer(free, finalizer)
	return Patch(ctx, writer, object, free)
}

// DeleteHeld removes a finalizer from an object that PaV wrote, and deletes it, unless it was replaced. An agent that is killed between the two
// writes finds an object to delete again.
func DeleteHeld(ctx context.Context, writer client.Client, object client.Object, finalizer string) error {
	if controllerutil.ContainsFinalizer(object, finalizer) {
		if err := LetGo(ctx, writer, object, finalizer); err != nil {
			return err
		}
	}
	if err := writer.Delete(ctx, object, client.Preconditions{UID: new(object.GetUID())}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %T %q: %w", object, object.GetName(), err)
	}
	return nil
}

// PatchStatus writes what changed of the status of an object, unless someone else wrote it meanwhile.
func PatchStatus(ctx context.Context, writer client.Client, before, after client.Object) error {
	err := writer.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return AboutPatch(before, err)
}

// AboutPatch returns the error of a pass whose patch has an error.
func AboutPatch(object client.Object, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.ErrStale
	case err != nil:
		return fmt.Errorf("updating %T %q: %w", object, object.GetName(), err)
	default:
		return nil
	}
}

// Read returns all fields of an object, without what other programs note in it. The error is reconcile.ErrStale if it has changed.
func Read(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind, as client.Object) (*unstructured.Unstructured, error) {
	object, err := reconcile.ReadObject(ctx, live, gvk, client.ObjectKeyFromObject(as))
	if err != nil {
		return nil, err
	}
	if object == nil || object.GetUID() != as.GetUID() || object.GetResourceVersion() != as.GetResourceVersion() {
		return nil, reconcile.ErrStale
	}
	annotations := object.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	object.SetAnnotations(annotations)
	return object, nil
}

// CopyRequest returns the copy of a claim, or of another object of a tenant, for its record. The error is a refusal if it is too large, and
// reconcile.ErrStale if it has changed since it was read.
func CopyRequest(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind, as client.Object) (*apiextensionsv1.JSON, error) {
	object, err := Read(ctx, live, gvk, as)
	if err != nil {
		return nil, err
	}
	return podplan.RecordClaim(object.Object)
}

// CopyClass returns the copy of a class for a record. The error is reconcile.ErrStale if it has changed since it was read.
func CopyClass(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind, as client.Object) (*apiextensionsv1.JSON, error) {
	object, err := Read(ctx, live, gvk, as)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", gvk.Kind, as.GetName(), err)
	}
	return &apiextensionsv1.JSON{Raw: raw}, nil
}
