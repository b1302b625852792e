package reconcile

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// VolumesFrom returns the PavVolumes of a provisioner that are created from the storage with a key, see pavv1.DataSource.Key, according to
// the cache. They are shared, and only read.
func VolumesFrom(ctx context.Context, cache client.Reader, provisioner, key string) ([]*pavv1.PavVolume, error) {
	volumes := &pavv1.PavVolumeList{}
	if err := cache.List(ctx, volumes, client.MatchingFields{volumesBySource: Bucket(Storage(provisioner, key))}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("looking up the volumes that are created from %s: %w", key, err)
	}
	var from []*pavv1.PavVolume
	for i := range volumes.Items {
		if v := &volumes.Items[i]; v.IsFrom(provisioner, key) {
			from = append(from, v)
		}
	}
	return from, nil
}
