package volume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

// clockTolerance is how far the clocks of an agent and of the API server may be apart.
const clockTolerance = 5 * time.Minute

// restored reports whether the PavVolume of a volume that has, or had, a PersistentVolume was restored from a backup of
// objects: its condition is older than the object itself, or its status is missing. It is not known what has happened to the
// storage since the backup.
func (o observation) restored() bool { return o.volume.Status.Handle == "" || o.predates() }

// predates reports whether the status is older than the object. One that an earlier version wrote has only its time.
func (o observation) predates() bool {
	if uid := o.volume.Status.RecordUID; uid != "" {
		return uid != o.volume.UID
	}
	c := meta.FindStatusCondition(o.volume.Status.Conditions, pavv1.VolumeProvisioned)
	return c != nil && o.volume.CreationTimestamp.Sub(c.LastTransitionTime.Time) > clockTolerance
}

// restoredPending reports whether the PavVolume of a volume that is not provisioned, as far as its record says, was restored
// from a backup. The volume may have been provisioned since, and its storage may have data: a creation pod may fail for that,
// and would be reverted.
func (o observation) restoredPending() bool {
	if !o.pending() || !o.wasBound && !o.predates() {
		return false
	}
	return o.ownPV() == nil || o.reverting() && !o.keepsPV()
}

// wasBound reports whether a claim was bound to a volume whose status says that no attempt was ever made: its PavVolume was
// restored without its status.
func wasBound(volume *pavv1.PavVolume) bool {
	if volume.Status.Attempt > 0 || volume.Status.Handle != "" {
		return false
	}
	s, err := podplan.RequestedOf(volume)
	// A tenant could write the name alone.
	return err == nil && s.Claim.Spec.VolumeName == volume.Name && s.Claim.Status.Phase == corev1.ClaimBound
}

func restoredText(volume *pavv1.PavVolume) string {
	return fmt.Sprintf("PavVolume %q was restored from a backup, and PaV does not know whether its storage has changed since; it does not delete the storage by itself: "+
		"to delete the storage, delete the PavVolume; to keep it, set the reclaim policy to Retain", volume.Name)
}

// pendingText says what to do about a restored PavVolume that is not provisioned, as far as its record says.
func (o observation) pendingText() string {
	status := &o.volume.Status
	switch {
	case o.ownPV() != nil:
		return restoredText(o.volume)
	case status.Plan != nil && status.Handle != "":
		return fmt.Sprintf("PavVolume %q was restored from a backup that was made before the volume was provisioned, and its storage may have data by now: "+
			"to keep the storage, restore the PersistentVolume too; to delete it, delete the PavVolume", o.volume.Name)
	default:
		return fmt.Sprintf("PavVolume %q was restored from a backup that does not say whether the volume was provisioned, and its storage may exist: "+
			"restore the PersistentVolume too, or delete the storage by hand and then the PavVolume", o.volume.Name)
	}
}

// renews reports whether a restored PavVolume is valid again: Kubernetes has bound its PersistentVolume.
func (o observation) renews(pv *corev1.PersistentVolume) bool {
	return o.volume.Status.Phase == pavv1.VolumeReady && o.restored() && pv.Status.Phase == corev1.VolumeBound
}
