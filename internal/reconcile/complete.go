package reconcile

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// CheckComplete asks the API server for all objects of a kind of PaV's. If there is one that the cache does not have, the error is ErrStale. A
// new leader asks it once: what former leaders have written must not be missing where it looks objects up in the cache.
func CheckComplete(ctx context.Context, live client.Reader, kind string, cached map[types.UID]bool) error {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(pavv1.GroupVersion.WithKind(kind + "List"))
	if err := live.List(ctx, all); err != nil {
		return fmt.Errorf("listing all objects of the kind %s: %w", kind, err)
	}
	for i := range all.Items {
		if !cached[all.Items[i].UID] {
			return ErrStale
		}
	}
	return nil
}
