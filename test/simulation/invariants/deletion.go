package invariants

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// deleting checks each deletion of storage before it takes effect.
func (i *Invariants) deleting(driver string, v *storage.Volume, by types.UID) {
	if v.By == "" {
		i.failf(1, "the storage of the handle %q of %s, which an administrator has, is deleted", v.Handle, driver)
	}
	for _, pv := range world.Objects[*corev1.PersistentVolume](i.store) {
		if isOf(pv, driver, v.Handle) && pv.Annotations[protocol.ProvisionedBy] == driver && !isReleased(pv) {
			i.failf(1, "the storage of the handle %q is deleted, which PersistentVolume %s (%s) has", v.Handle, pv.Name, pv.Status.Phase)
		}
	}
	i.claimed(v)
	i.sourceIsDeleted(driver, storage.OfVolume, v.Handle)
	i.snapshotsDepend(driver, v.Handle)
	for _, other := range world.Objects[*pavv1.PavVolume](i.store) {
		if other.UID == v.By && other.UID != by && other.Spec.Provisioner == driver && other.Status.Handle == v.Handle && isMade(other) {
			i.failf(1, "the storage of the handle %q, which PavVolume %s (%s) made, is deleted for another", v.Handle, other.Name, other.Status.Phase)
		}
	}
	for _, stage := range world.Objects[*pavv1.PavStage](i.store) {
		if stage.Spec.Provisioner == driver && stage.Spec.VolumeHandle == v.Handle && stage.Status.Phase == pavv1.StageStaged &&
			(stage.Spec.Scope != pavv1.StagingScopePod || stage.Spec.Client != nil) { // otherwise, the stage has nothing on the node
			i.failf(3, "the storage of the handle %q is deleted while it is staged on %s", v.Handle, stage.Spec.NodeName)
		}
	}
}

// claimed checks that the storage of a volume does not belong to a claim. The claim may have lost its PersistentVolume.
func (i *Invariants) claimed(v *storage.Volume) {
	for _, claim := range world.Objects[*corev1.PersistentVolumeClaim](i.store) {
		if own := world.Object[*pavv1.PavVolume](i.store, "", claim.Spec.VolumeName); own != nil && own.UID == v.By && claim.DeletionTimestamp == nil &&
			(own.Status.Handle == "" || own.Status.Handle == v.Handle) { // else the storage is of an attempt that is over
			i.failf(1, "the storage of the handle %q is deleted, which claim %s/%s (%s) is bound to", v.Handle, claim.Namespace, claim.Name, claim.Status.Phase)
		}
	}
}
