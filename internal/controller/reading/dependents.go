package reading

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// Dependents returns the names of the PavVolumes that need the storage of a record, see pavv1.DataSource.Record, according to the cache:
// those that are being created from it and, if volumes depend on their source, all others that were. The storage is not deleted while
// there are any. Tenants may delete the objects that they name as sources at any time.
func (s Readers) Dependents(ctx context.Context, record string, depends bool) ([]string, error) {
	volumes := &pavv1.PavVolumeList{}
	if err := s.Client.List(ctx, volumes, client.MatchingFields{reconcile.VolumesBySource: reconcile.Bucket(record)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("looking up the volumes that are created from %s: %w", record, err)
	}
	return dependents(volumes, record, depends), nil
}

// LiveDependents is Dependents, as the API server has it.
func (s Readers) LiveDependents(ctx context.Context, record string, depends bool) ([]string, error) {
	volumes := &pavv1.PavVolumeList{}
	if err := s.Live.List(ctx, volumes, client.MatchingLabels{pavv1.SourceLabel: workflow.Hash(record)}); err != nil {
		return nil, fmt.Errorf("asking for the volumes that are created from %s: %w", record, err)
	}
	return dependents(volumes, record, depends), nil
}

func dependents(volumes *pavv1.PavVolumeList, record string, depends bool) []string {
	var names []string
	for i := range volumes.Items {
		v := &volumes.Items[i]
		if v.Spec.Source == nil || v.Spec.Source.Record() != record || v.Status.Step == pavv1.StepDeleted {
			continue
		}
		if depends || v.Status.Phase == "" || v.Status.Phase == pavv1.VolumePending {
			names = append(names, v.Name)
		}
	}
	return names
}

// Depend reports whether volumes of a definition need their source after they were created.
func Depend(p *pavv1.PavProvisioner) bool {
	return p != nil && p.Spec.VolumeCreation != nil && p.Spec.VolumeCreation.DependsOnSource
}
