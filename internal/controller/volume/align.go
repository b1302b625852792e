package volume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// changes make a PavVolume and its PersistentVolume agree. The zero value changes nothing.
type changes struct {
	// policy is the reclaim policy that is copied from the PersistentVolume to the PavVolume, and
	// pvPolicy the one that is copied the other way.
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

// alignment returns what has to change. While the PersistentVolume exists, its reclaim policy applies, as that is the
// one that administrators change. There is one exception: a retained volume is also deleted if the policy of its
// PavVolume is changed to Delete and the PavVolume is deleted.
func alignment(o observation) changes {
	c := changes{}
	policy, bound := o.volume.Spec.ReclaimPolicy, false
	if pv := o.ownPV(); pv != nil {
		c, policy = alignmentWith(o, pv)
		bound = pv.Status.Phase == corev1.VolumeBound
	}
	// The storage of a retained volume belongs to the administrator, so its record has no finalizer. When a claim is
	// bound to it again, the finalizer is added before the phase changes: every other record must survive its deletion.
	owned := policy == corev1.PersistentVolumeReclaimDelete || o.volume.Status.Phase != pavv1.VolumeRetained || bound
	c.volume = finalizerOf(o.volume, pavv1.VolumeFinalizer, owned)
	return c
}

// alignmentWith returns what has to change because of the PersistentVolume, and the policy that applies.
func alignmentWith(o observation, pv *corev1.PersistentVolume) (changes, corev1.PersistentVolumeReclaimPolicy) {
	recorded, policy := o.volume.Spec.ReclaimPolicy, policyOf(pv)
	if o.reclaimed(pv) {
		if o.deleting() {
			return changes{pvPolicy: recorded}, recorded
		}
		return changes{}, recorded // until the PavVolume is deleted, too
	}
	c := changes{}
	// While it waits for a new claim, the policy is not copied: the administrator may still take it back.
	available := o.volume.Status.Phase == pavv1.VolumeRetained && !o.released(pv)
	if recorded != policy && (!available || policy == corev1.PersistentVolumeReclaimRetain) {
		c.policy = policy
	}
	// While it is being deleted, its finalizer is removed after its storage.
	if pv.DeletionTimestamp == nil || policy != corev1.PersistentVolumeReclaimDelete {
		c.pv = finalizerOf(pv, pavv1.PVFinalizer, policy == corev1.PersistentVolumeReclaimDelete)
	}
	if c.pv == add {
		c.policy = "" // first the finalizer, from which reclaimed sees which object the policy Delete came from
	}
	return c, policy
}

// finalizerOf returns how an object's finalizers have to change. Kubernetes rejects new ones on an object that is being deleted.
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
