package cosi1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/protocol"
)

// claimObservation has everything that the decision about a BucketClaim depends on. There is one for each claim of a name: the one that
// exists, and former ones of which something is left.
type claimObservation struct {
	// name is the name of the claim, and uid its UID.
	name types.NamespacedName
	uid  types.UID

	// now is when the observation was made.
	now time.Time

	// claim is nil if it is gone, or was replaced by one of another UID.
	claim *cosiv1.BucketClaim

	// class is the BucketClass that a claim without a record names; nil if it does not exist.
	class *cosiv1.BucketClass

	// provisioner is the PavProvisioner of the record or, if there is none, the one that is the driver of the existing Bucket, or else of
	// the class. It is nil if there is no such PavProvisioner.
	provisioner *pavv1.PavProvisioner

	// record is the record of the claim; nil if it does not exist.
	record *pavv1.PavBucket

	// bucket is the Bucket that is the claim's, that it asks for, or that has the name of one that would be made for it; nil if there is
	// none.
	bucket *cosiv1.Bucket

	// holder is the other claim whose record has the existing Bucket that the claim asks for; "" for none.
	holder string

	// accesses are the objects that have access to the bucket of the record, or ask for it.
	accesses []string

	// remembered says that the claim had a record.
	remembered bool
}

// wanted reports whether the claim exists, and is not being deleted.
func (o claimObservation) wanted() bool { return o.claim != nil && o.claim.DeletionTimestamp == nil }

// isOurs reports whether the claim is PaV's.
func (o claimObservation) isOurs() bool {
	return o.record != nil || o.provisioner != nil || o.remembered || o.isMade()
}

// isForeign reports whether a claim without a record is that of a driver other than its class now names: an administrator has written the class
// again. The claim, its finalizer and its Bucket are that driver's to clean up.
func (o claimObservation) isForeign(driver string) bool {
	return o.isBound() && o.bucket.Spec.DriverName != driver || !o.wanted() && o.isRenamed()
}

// isReleased reports whether the record is given up, which cannot be taken back.
func (o claimObservation) isReleased() bool { return o.record != nil && o.record.Spec.Released }

// isKept reports whether the bucket is still the claim's. One that is retained is the administrator's.
func (o claimObservation) isKept() bool {
	return o.record != nil && o.record.Status.Phase != pavv1.BucketRetained
}

// isReady reports whether access to the bucket can be granted.
func (o claimObservation) isReady() bool { return o.record.Status.Phase == pavv1.BucketReady }

// isExisting reports whether the claim asks for a bucket that exists already.
func (o claimObservation) isExisting() bool {
	if o.record != nil {
		return o.record.Spec.ExistingBucketID != ""
	}
	return o.claim != nil && o.claim.Spec.ExistingBucketName != ""
}

// isBound reports whether the Bucket names the claim, with its UID.
func (o claimObservation) isBound() bool {
	return o.bucket != nil && isOf(o.bucket, o.name, o.uid)
}

// isOf reports whether a Bucket names a claim, with its UID.
func isOf(b *cosiv1.Bucket, name types.NamespacedName, uid types.UID) bool {
	ref := reference(b)
	return ref.Namespace == name.Namespace && ref.Name == name.Name && ref.UID == uid
}

// isMade reports whether PaV made the Bucket for the claim. Only such a Bucket is ever deleted.
func (o claimObservation) isMade() bool {
	return o.isBound() && o.bucket.Labels[pavv1.ProvisionerLabel] != "" && o.bucket.Name == cosiv1.BucketOf(o.uid)
}

// isBucketLeft reports whether the Bucket of a claim that has no bucket any more is to be deleted or, if PaV did not make it, still has a
// finalizer.
func (o claimObservation) isBucketLeft() bool {
	return o.isMade() || o.isBound() && released(o.bucket) != nil
}

// isTaken reports whether the Bucket that the claim would have is another's. That of a claim that asks for an existing one is not: there,
// the record counts.
func (o claimObservation) isTaken() bool {
	return !o.isExisting() && o.bucket != nil && (!o.isBound() || o.bucket.Spec.DriverName != o.record.Spec.Provisioner)
}

// isRenamed reports whether the status of the claim names another Bucket than the claim's.
func (o claimObservation) isRenamed() bool {
	shown := o.claim.Status.BucketName
	return shown != "" && shown != o.bucketName()
}

// isShown reports whether the claim and its Bucket show the bucket. A Bucket of an administrator that is gone is not made again.
func (o claimObservation) isShown() bool {
	switch {
	case !controllerutil.ContainsFinalizer(o.claim, cosiv1.ClaimFinalizer), o.claim.Status != o.claimStatus():
		return false
	case o.bucket == nil:
		return o.isExisting()
	default:
		return equality.Semantic.DeepEqual(o.bucket, filled(o)) && o.bucket.Status == o.bucketStatus()
	}
}

// claimStatus returns the status that the claim is to have.
func (o claimObservation) claimStatus() cosiv1.BucketClaimStatus {
	return cosiv1.BucketClaimStatus{BucketReady: o.isReady(), BucketName: o.bucketName()}
}

// bucketStatus returns the status that the Bucket is to have. What identifies a bucket never changes.
func (o claimObservation) bucketStatus() cosiv1.BucketStatus {
	status := cosiv1.BucketStatus{BucketReady: o.isReady(), BucketID: o.bucket.Status.BucketID}
	if status.BucketReady && status.BucketID == "" {
		status.BucketID = o.record.Status.BucketID
	}
	return status
}

// isHeld reports whether a claim that is being deleted has the finalizer.
func (o claimObservation) isHeld() bool {
	return o.claim != nil && controllerutil.ContainsFinalizer(o.claim, cosiv1.ClaimFinalizer)
}

// isRecordOf reports whether a PavBucket is the record of the claim.
func (o claimObservation) isRecordOf(b *pavv1.PavBucket) bool {
	return bucketapi.IsRecordOfClaim(b, pavv1.BucketAPICOSI1, o.name, o.uid)
}

// recordName returns the name of the record.
func (o claimObservation) recordName() string {
	if o.record != nil {
		return o.record.Name
	}
	return protocol.BucketRecord(o.uid)
}

// bucketName returns the name of the claim's Bucket. In the record it is the name of the bucket.
func (o claimObservation) bucketName() string {
	switch {
	case o.record != nil:
		return o.record.Spec.BucketName
	case o.isExisting():
		return o.claim.Spec.ExistingBucketName
	default:
		return cosiv1.BucketOf(o.uid)
	}
}
