package invariants

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
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
	if source.Capacity == nil {
		return // PaV was not told how large it is: an administrator has imported a snapshot before its record had a size
	}
	if capacity := pv.Spec.Capacity[corev1.ResourceStorage]; made.Size < made.SourceSize || capacity.Value() < made.SourceSize {
		i.failf(1, "PersistentVolume %s has %s, its storage %d bytes, and its source %d", pv.Name, capacity.String(), made.Size, made.SourceSize)
	}
}

// capacityIsShown checks that a PersistentVolume has no more than its storage.
func (i *Invariants) capacityIsShown(by string, pv *corev1.PersistentVolume) {
	i.hasCapacity(by, "PersistentVolume "+pv.Name, pv, pv.Spec.Capacity)
}

// claimIsShown checks that a claim shows no more than its storage has.
func (i *Invariants) claimIsShown(by string, claim *corev1.PersistentVolumeClaim) {
	pv := world.Object[*corev1.PersistentVolume](i.store, "", claim.Spec.VolumeName)
	if pv != nil && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == claim.UID {
		i.hasCapacity(by, "claim "+claim.Namespace+"/"+claim.Name, pv, claim.Status.Capacity)
	}
}

func (i *Invariants) hasCapacity(by, what string, pv *corev1.PersistentVolume, shown corev1.ResourceList) {
	capacity := shown[corev1.ResourceStorage]
	if pv.Spec.CSI == nil {
		return
	}
	if made := i.storage.Find(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle); made != nil && made.Size > 0 && capacity.Value() > made.Size {
		i.failf(1, "%s says that %s has %s, and its storage has %d bytes", by, what, capacity.String(), made.Size)
	}
}

// growth returns the claims that request more than they have, of which nothing says why.
func (i *Invariants) growth(warnings func(claim *corev1.PersistentVolumeClaim) []string) []error {
	var problems []error
	for _, claim := range world.Objects[*corev1.PersistentVolumeClaim](i.store) {
		volume := world.Object[*pavv1.PavVolume](i.store, "", protocol.VolumeName(claim.UID))
		requested, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
		if volume == nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound || requested.Cmp(has) <= 0 {
			continue
		}
		if waitsForNode(claim) && !i.runs(claim) {
			continue
		}
		if whyNot(volume.Status.Conditions) == "" && len(warnings(claim)) == 0 {
			problems = append(problems, fmt.Errorf("claim %s/%s has %s and requests %s, and nothing says why", claim.Namespace, claim.Name, has.String(), requested.String()))
		}
	}
	return problems
}

// runs reports whether a pod that uses a claim runs.
func (i *Invariants) runs(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(world.Objects[*corev1.Pod](i.store), func(pod *corev1.Pod) bool {
		return pod.Namespace == claim.Namespace && protocol.Uses(pod, claim.Name) && pod.Status.Phase == corev1.PodRunning
	})
}

// waitsForNode reports whether the volume of a claim has grown, and a node has yet to make that available.
func waitsForNode(claim *corev1.PersistentVolumeClaim) bool {
	return kubernetes.GrowsOnNode(claim) || protocol.IsInfeasibleOnNode(claim)
}

// Expanded checks that a volume has as much available on its node as the node agent answers, in bytes.
func (i *Invariants) Expanded(volume string, available, capacity int64) {
	if available < capacity {
		i.failf(1, "the node agent answers that volume %s has %d bytes on its node, and it has %d", volume, capacity, available)
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
