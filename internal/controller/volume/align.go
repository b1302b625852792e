package volume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// changes are what makes a PavVolume and its PersistentVolume agree. A zero value changes nothing.
type changes struct {
	// policy is the reclaim policy that the PavVolume takes over from the PersistentVolume, and
	// pvPolicy the one that the PersistentVolume takes over from the PavVolume.
	policy, pvPolicy corev1.PersistentVolumeReclaimPolicy

	// volume and pv change PaV's finalizer on the object.
	volume, pv finalizerChange
}

// finalizerChange is what to do about a finalizer.
type finalizerChange int

const (
	keep finalizerChange = iota
	add
	remove
)

// alignment tells what has to change. While the PersistentVolume exists its reclaim policy is the
// one that counts, as that is the one that administrators know to change; save that a retained
// volume is deleted, too, where its PavVolume's is changed to Delete and the PavVolume is deleted.
func alignment(o snapshot) changes {
	c := changes{}
	policy, bound := o.volume.Spec.ReclaimPolicy, false
	if pv := o.ownPV(); pv != nil {
		c, policy = alignmentWith(o, pv)
		bound = pv.Status.Phase == corev1.VolumeBound
	}
	// A retained volume's storage is the administrator's, so that its record holds nothing. Once a claim has it
	// again, the finalizer comes first, and then the phase: no other record may go at once when it is deleted.
	owned := policy == corev1.PersistentVolumeReclaimDelete || o.volume.Status.Phase != pavv1.VolumeRetained || bound
	c.volume = finalizerOf(o.volume, pavv1.VolumeFinalizer, owned)
	return c
}

// alignmentWith tells what has to change because of the PersistentVolume, and the policy that counts.
func alignmentWith(o snapshot, pv *corev1.PersistentVolume) (changes, corev1.PersistentVolumeReclaimPolicy) {
	recorded, policy := o.volume.Spec.ReclaimPolicy, policyOf(pv)
	if o.reclaimed(pv) {
		if o.deleting() {
			return changes{pvPolicy: recorded}, recorded
		}
		return changes{}, recorded // until the PavVolume is deleted, too
	}
	c := changes{}
	// One that waits for a new claim remembers nothing until it has one, lest the record tell later
	// what the administrator has taken back.
	available := o.volume.Status.Phase == pavv1.VolumeRetained && !o.released(pv)
	if recorded != policy && (!available || policy == corev1.PersistentVolumeReclaimRetain) {
		c.policy = policy
	}
	// While it is being deleted, its finalizer goes with its storage.
	if pv.DeletionTimestamp == nil || policy != corev1.PersistentVolumeReclaimDelete {
		c.pv = finalizerOf(pv, pavv1.PVFinalizer, policy == corev1.PersistentVolumeReclaimDelete)
	}
	if c.pv == add {
		c.policy = "" // first the finalizer, by which reclaimed tells who said Delete
	}
	return c, policy
}

// finalizerOf compares an object's finalizers with what is wanted. Kubernetes refuses new ones on an object under deletion.
func finalizerOf(object client.Object, finalizer string, wanted bool) finalizerChange {
	has := slices.Contains(object.GetFinalizers(), finalizer)
	switch {
	case has && !wanted:
		return remove
	case !has && wanted && object.GetDeletionTimestamp() == nil:
		return add
	default:
		return keep
	}
}
