package observability

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StoreOf returns the cached objects of one kind without copying them: for metrics, which read all of them often.
// They are shared, and must not be changed.
func StoreOf(ctx context.Context, from cache.Cache, kind client.Object) (toolscache.Store, error) {
	informer, err := from.GetInformer(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("finding the cache of %T: %w", kind, err)
	}
	cached, ok := informer.(interface{ GetStore() toolscache.Store })
	if !ok {
		return nil, fmt.Errorf("the cache of %T has no store", kind)
	}
	return cached.GetStore(), nil
}
