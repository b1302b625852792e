package invariants

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/world"
)

// volumeIsRequested records what is in the source of a new PavVolume: what is in its volume later must be the same, even if
// the handle of the source has become that of other storage meanwhile.
func (i *Invariants) volumeIsRequested(by string, volume *pavv1.PavVolume) {
	source := volume.Spec.Source
	if source == nil {
		return
	}
	data, found := i.storage.DataOf(volume.Spec.Provisioner, string(source.Kind), source.Handle)
	if !found {
		return // the claim is refused, or its creation pods fail
	}
	if data.Tenant != "" && data.Tenant != volume.Spec.ClaimRef.Namespace {
		i.failf(1, "%s records PavVolume %s for namespace %s, and its source has data of namespace %s", by, volume.Name, volume.Spec.ClaimRef.Namespace, data.Tenant)
	}
	i.copied[volume.UID] = data
}

// copyIsMade checks that a volume that is made from a source has the data of the source, and is at least as large.
func (i *Invariants) copyIsMade(volume *pavv1.PavVolume, pv *corev1.PersistentVolume) {
	source := volume.Spec.Source
	made := i.storage.Find(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	if made == nil {
		return // pvIsMade reports it
	}
	if source == nil {
		if made.Data.Tenant != "" && (made.Data.Of != made.By || made.Data.Tenant != volume.Spec.ClaimRef.Namespace) {
			i.failf(1, "PersistentVolume %s is made for namespace %s, and has the data of %v", pv.Name, volume.Spec.ClaimRef.Namespace, made.Data)
		}
		return
	}
	if want, known := i.copied[volume.UID]; !known || made.Data != want {
		i.failf(1, "PersistentVolume %s is made from %s %s/%s with the data %v, and has %v", pv.Name, source.Kind, source.Namespace, source.Name, want, made.Data)
	}
	if capacity := pv.Spec.Capacity[corev1.ResourceStorage]; made.Size < made.SourceSize || capacity.Value() < made.SourceSize {
		i.failf(1, "PersistentVolume %s has %s, its storage %d bytes, and its source %d", pv.Name, capacity.String(), made.Size, made.SourceSize)
	}
}

// sourceIsDeleted checks that nothing depends on storage that is deleted: no volume of a provisioner whose volumes depend on
// their sources, and no snapshot of one whose snapshots depend on their volumes.
func (i *Invariants) sourceIsDeleted(driver, kind, handle string) {
	for _, volume := range world.Objects[*pavv1.PavVolume](i.store) {
		source := volume.Spec.Source
		if source == nil || volume.Spec.Provisioner != driver || string(source.Kind) != kind || source.Handle != handle {
			continue
		}
		depends := volume.Status.DependsOnSource && volume.Status.Step != pavv1.StepDeleted
		if made := i.storage.Find(driver, volume.Status.Handle); depends && isMade(volume) && made != nil && made.By == volume.UID {
			i.failf(1, "the %s %q of %s is deleted, on which PavVolume %s (%s) depends", kind, handle, driver, volume.Name, volume.Status.Phase)
		}
	}
}

// waitsForSource reports whether a warning says why a claim cannot have a copy, or waits for it.
func (i *Invariants) waitsForSource(claim *corev1.PersistentVolumeClaim, warnings []string) bool {
	source := protocol.Source(claim)
	if source == nil {
		return false
	}
	for _, w := range warnings {
		if strings.Contains(w, "spec.dataSourceRef") || strings.Contains(w, source.Name) {
			return true
		}
	}
	volume := world.Object[*pavv1.PavVolume](i.store, "", protocol.VolumeName(claim.UID))
	return volume != nil && whyNot(volume.Status.Conditions) != ""
}
