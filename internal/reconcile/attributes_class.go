package reconcile

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServesAttributesClasses reports whether the API server has VolumeAttributesClasses. Those before Kubernetes 1.34 do not, and remove
// what claims say of them.
func ServesAttributesClasses(mapper meta.RESTMapper) (bool, error) {
	kind := storagev1.SchemeGroupVersion.WithKind("VolumeAttributesClass")
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether there are VolumeAttributesClasses: %w", err)
	}
	return true, nil
}

// AttributesClass returns the VolumeAttributesClass of a name, or nil if there is none.
func AttributesClass(ctx context.Context, reader client.Reader, name string) (*storagev1.VolumeAttributesClass, error) {
	if name == "" {
		return nil, nil
	}
	class := &storagev1.VolumeAttributesClass{}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading VolumeAttributesClass %q: %w", name, err)
	}
	return class, nil
}
