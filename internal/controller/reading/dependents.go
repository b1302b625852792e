package reading

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// Dependents returns the names of the PavVolumes of a provisioner that need the storage with a key, see pavv1.DataSource.Key, according to
// the cache: those that are being created from it, and those that were and depend on it. The storage is not deleted while there are any:
// tenants may delete the objects that they name as sources at any time.
func (s Readers) Dependents(ctx context.Context, provisioner, key string) ([]string, error) {
	volumes, err := reconcile.VolumesFrom(ctx, s.Client, provisioner, key)
	var names []string
	for _, v := range volumes {
		if v.NeedsSource(provisioner, key) {
			names = append(names, v.Name)
		}
	}
	return names, err
}

// LiveDependents is Dependents, as the API server has it.
func (s Readers) LiveDependents(ctx context.Context, provisioner, key string) ([]string, error) {
	var names []string
	labels := client.MatchingLabels{pavv1.ProvisionerLabel: provisioner, pavv1.SourceLabel: workflow.Hash(key)}
	err := reconcile.Pages(ctx, s.Live, &pavv1.PavVolumeList{}, []client.ListOption{labels}, func() { names = nil }, func(page *pavv1.PavVolumeList) {
		for i := range page.Items {
			if v := &page.Items[i]; v.NeedsSource(provisioner, key) {
				names = append(names, v.Name)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("asking for the volumes that are created from %s: %w", key, err)
	}
	return names, nil
}
