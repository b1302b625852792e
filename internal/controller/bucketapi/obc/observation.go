package obc

import (
	"maps"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/protocol"
)

// kind is the kind of the claims, as requesters of access.
const kind = "ObjectBucketClaim"

// observation has everything that the decision about a claim depends on. There is one for each claim of a name: the one that exists, and
// former ones of which something is left.
type observation struct {
	// name is the name of the claim, and uid its UID.
	name types.NamespacedName
	uid  types.UID

	// now is when the observation was made.
	now time.Time

	// claim is nil if it is gone, or was replaced by one of another UID.
	claim *objectbucketv1.ObjectBucketClaim

	// class is the StorageClass of a claim without records; nil if it does not exist.
	class *storagev1.StorageClass

	// provisioner is the PavProvisioner of the records. If there are none, it is that of the StorageClass or, of a claim that is being
	// deleted, the one that the label of the claim names. It is nil if there is no such PavProvisioner.
	provisioner *pavv1.PavProvisioner

	// bucket and access are the records of the claim; nil if they do not exist.
	bucket *pavv1.PavBucket
	access *pavv1.PavBucketAccess

	// objectBucket is the claim's, and other is another one that has its name. At least one of them is nil.
	objectBucket, other *objectbucketv1.ObjectBucket

	// former says that something is left of another claim that had the name.
	former bool

	memory memory
}

// wanted reports whether the claim exists, and is not being deleted.
func (o observation) wanted() bool { return o.claim != nil && o.claim.DeletionTimestamp == nil }

// isOurs reports whether the claim is PaV's.
func (o observation) isOurs() bool {
	return o.bucket != nil || o.access != nil || o.objectBucket != nil || o.provisioner != nil || o.memory.ours
}

// isForeign reports whether another provisioner has served the claim, whose class has changed since. That is the provisioner's to clean up.
func (o observation) isForeign() bool {
	return o.bucket == nil && o.access == nil && o.provisioner != nil && o.label() != "" && o.label() != protocol.ObjectBucketProvisioner(o.provisioner.Name)
}

// isReleased reports whether a record of the claim is given up, which cannot be taken back.
func (o observation) isReleased() bool {
	return o.bucket != nil && o.bucket.Spec.Released || o.access != nil && o.access.Spec.Released
}

// isKept reports whether the bucket is still the claim's. One that is retained is the administrator's.
func (o observation) isKept() bool {
	return o.bucket != nil && o.bucket.Status.Phase != pavv1.BucketRetained
}

// isSettled reports whether nothing is left that a claim of the same name has to wait for.
func (o observation) isSettled() bool {
	return o.claim == nil && o.access == nil && o.objectBucket == nil && !o.isKept()
}

// isGranted reports whether clients can use the bucket.
func (o observation) isGranted() bool {
	return o.bucket != nil && o.bucket.Status.Phase == pavv1.BucketReady && o.access != nil && o.access.Status.Current != nil
}

// isUpdateDue reports whether the claim asks for something else than its record says.
func (o observation) isUpdateDue() bool {
	return !maps.Equal(o.claim.Spec.AdditionalConfig, o.bucket.Spec.AdditionalConfig)
}

// isBound reports whether the claim, its ObjectBucket and its ConfigMap show the bucket.
func (o observation) isBound() bool {
	spec := &o.claim.Spec
	return o.objectBucket != nil && shows(o.objectBucket, o) && o.memory.written == hashOf(configData(o.bucket)) &&
		spec.BucketName != "" && spec.ObjectBucketName != "" && o.claim.Status.Phase == objectbucketv1.ClaimBound
}

// isHeld reports whether the claim has the finalizer.
func (o observation) isHeld() bool {
	return o.claim != nil && controllerutil.ContainsFinalizer(o.claim, objectbucketv1.Finalizer)
}

// isHeldAsPaVs reports whether the claim has what hold gives it.
func (o observation) isHeldAsPaVs() bool {
	return o.isHeld() && o.claim.Labels[objectbucketv1.ProvisionerLabel] == o.label()
}

// rotation returns the request for a new account that the record does not have yet.
func (o observation) rotation() bucketapi.Rotation { return bucketapi.RotationOf(o.claim, o.access) }

// isRotationDue reports whether the request for a new account is to be passed on.
func (o observation) isRotationDue() bool { return o.rotation().IsDue(o.now) }

// nextRotation returns when to look again at a request for a new account; 0 for never.
func (o observation) nextRotation() time.Duration { return o.rotation().Next(o.now) }

// isBucketOf reports whether a PavBucket is the record of a claim, and isAccessOf the same of a PavBucketAccess.
func (o observation) isBucketOf(b *pavv1.PavBucket) bool {
	ref := b.Spec.ClaimRef
	return b.Spec.API == pavv1.BucketAPIClaim && ref.UID == o.uid && ref.Namespace == o.name.Namespace && ref.Name == o.name.Name
}

func (o observation) isAccessOf(a *pavv1.PavBucketAccess) bool {
	ref := a.Spec.Requester
	return a.Spec.API == pavv1.BucketAPIClaim && ref.UID == o.uid && ref.Namespace == o.name.Namespace && ref.Name == o.name.Name
}

// isOfName reports whether PaV wrote an ObjectBucket for a claim of a name, of whichever UID.
func isOfName(b *objectbucketv1.ObjectBucket, name types.NamespacedName) bool {
	ref := b.Spec.ClaimRef
	return b.Labels[pavv1.ProvisionerLabel] != "" && ref != nil && ref.Namespace == name.Namespace && ref.Name == name.Name
}

// addObjectBucket adds the ObjectBucket that has the claim's name for one; nil if there is none.
func (o *observation) addObjectBucket(b *objectbucketv1.ObjectBucket) {
	switch {
	case b == nil:
	case isOfName(b, o.name) && b.Spec.ClaimRef.UID == o.uid:
		o.objectBucket = b
	default:
		o.other = b
	}
}

// bucketRecord returns the name of the PavBucket of the claim, and accessRecord that of its PavBucketAccess.
func (o observation) bucketRecord() string {
	if o.bucket != nil {
		return o.bucket.Name
	}
	return protocol.BucketRecord(o.uid)
}

func (o observation) accessRecord() string {
	if o.access != nil {
		return o.access.Name
	}
	return protocol.AccessRecord(o.uid)
}

// label returns the value of the label bucket-provisioner of the objects of the claim; "" if it is not known.
func (o observation) label() string {
	switch {
	case o.bucket != nil:
		return protocol.ObjectBucketProvisioner(o.bucket.Spec.Provisioner)
	case o.access != nil:
		return protocol.ObjectBucketProvisioner(o.access.Spec.Provisioner)
	case o.objectBucket != nil:
		return o.objectBucket.Labels[objectbucketv1.ProvisionerLabel]
	case o.claim != nil:
		return o.claim.Labels[objectbucketv1.ProvisionerLabel]
	default:
		return ""
	}
}
