package stage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// handleIndex finds PersistentVolumes by driver and handle.
const handleIndex = "driverAndHandle"

// IndexVolumes adds the index that Cache finds PersistentVolumes with.
func IndexVolumes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.PersistentVolume{}, handleIndex, func(object client.Object) []string {
		if volume, ok := object.(*corev1.PersistentVolume); ok && volume.Spec.CSI != nil {
			return []string{workflow.Hash(volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing persistent volumes: %w", err)
	}
	return nil
}

// TrimVolume removes from a PersistentVolume in the cache everything that IndexVolumes does not need.
func TrimVolume(object any) (any, error) {
	volume, ok := object.(*corev1.PersistentVolume)
	if !ok {
		return object, nil
	}
	trimmed := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume.Name, UID: volume.UID, ResourceVersion: volume.ResourceVersion}}
	if source := volume.Spec.CSI; source != nil {
		trimmed.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: source.Driver, VolumeHandle: source.VolumeHandle}
	}
	return trimmed, nil
}

// Cache is a Catalogue over the agent's caches.
type Cache struct {
	// Reader reads the caches.
	Reader client.Reader
}

// VolumeNames implements Catalogue.
func (c Cache) VolumeNames(ctx context.Context, driver, handle string) ([]string, error) {
	list := &corev1.PersistentVolumeList{}
	if err := c.Reader.List(ctx, list, client.MatchingFields{handleIndex: workflow.Hash(driver, handle)}); err != nil {
		return nil, fmt.Errorf("finding the volume: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// Provisioner implements Catalogue.
func (c Cache) Provisioner(ctx context.Context, name string) (*pavv1.PavProvisioner, error) {
	provisioner := &pavv1.PavProvisioner{}
	if err := c.Reader.Get(ctx, client.ObjectKey{Name: name}, provisioner); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("getting PavProvisioner %q: %w", name, err)
	}
	return provisioner, nil
}
