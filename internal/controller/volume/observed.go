package volume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// observed is all that the decision about a volume depends on.
type observed struct {
	volume *pavv1.PavVolume

	// provisioner is the volume's; nil if it does not exist.
	provisioner *pavv1.PavProvisioner

	// registered says whether the provisioner's CSIDriver exists.
	registered bool

	// claim is what has become of the claim that the volume is made for.
	claim claimState

	// pv is the PersistentVolume of the volume's name, whoever made it; nil if there is none.
	pv *corev1.PersistentVolume

	// holders are the nodes on which the volume is, or may be, staged; sorted.
	holders []string
}

// claimState is what has become of the claim that a volume is made for.
type claimState string

const (
	// claimWaits: the claim waits for this volume.
	claimWaits claimState = "Waits"

	// claimGone: the claim is deleted or under deletion, or another one has its name.
	claimGone claimState = "Gone"

	// claimElsewhere: the claim is bound to another volume.
	claimElsewhere claimState = "Elsewhere"

	// claimBound: the claim is bound to this volume, or was until its PersistentVolume was removed by force.
	claimBound claimState = "Bound"
)

// stateOf tells what has become of the volume's claim. Claim is the one of its name, or nil.
func stateOf(claim *corev1.PersistentVolumeClaim, volume *pavv1.PavVolume) claimState {
	switch {
	case claim == nil || claim.UID != volume.Spec.ClaimRef.UID || claim.DeletionTimestamp != nil:
		return claimGone
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name:
		return claimElsewhere
	case claim.Spec.VolumeName != "" || claim.Status.Phase == corev1.ClaimLost:
		return claimBound
	default:
		return claimWaits
	}
}

// pending says whether the volume is in the making: no PersistentVolume was ever seen.
func (o observed) pending() bool {
	phase := o.volume.Status.Phase
	return phase == "" || phase == pavv1.VolumePending
}

// deleting says whether somebody asked for the PavVolume to be deleted.
func (o observed) deleting() bool { return o.volume.DeletionTimestamp != nil }

// ownPV returns the PersistentVolume if it is the volume's, or nil. A claim of another name may be
// bound to it by now, but driver and handle never change.
func (o observed) ownPV() *corev1.PersistentVolume {
	if o.pv == nil || o.pv.Spec.CSI == nil || o.pv.Spec.CSI.Driver != o.volume.Spec.Provisioner {
		return nil
	}
	if handle := o.volume.Status.Handle; handle != "" && handle != o.pv.Spec.CSI.VolumeHandle {
		return nil
	}
	if ref := o.pv.Spec.ClaimRef; o.pending() && (ref == nil || ref.UID != o.volume.Spec.ClaimRef.UID) {
		return nil
	}
	return o.pv
}

// released says whether nobody is entitled to the PersistentVolume any more.
//
// Protocol: "External deleters MUST watch for PV changes. When pv.Status.Phase == Released …". One
// that was deleted before it was bound never gets there, as nothing binds it any more.
func (o observed) released(pv *corev1.PersistentVolume) bool {
	if pv.Status.Phase == corev1.VolumeReleased {
		return true
	}
	return pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound
}

// policyOf returns the reclaim policy of a PersistentVolume. What is not Delete is the administrator's to reclaim.
func policyOf(pv *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return corev1.PersistentVolumeReclaimDelete
	}
	return corev1.PersistentVolumeReclaimRetain
}

// holds says whether a stage keeps its volume from being deleted. The record of a failed stage,
// whose effects were reverted, does not.
func holds(stage *pavv1.PavStage) bool {
	return stage.Status.Phase != pavv1.StageFailed || slices.Contains(stage.Finalizers, pavv1.StageFinalizer)
}
