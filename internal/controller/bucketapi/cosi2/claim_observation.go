package cosi2

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
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
	claim *cosiv2.BucketClaim

	// class is the BucketClass that a claim without a record names; nil if it does not exist.
	class *cosiv2.BucketClass

	// provisioner is the PavProvisioner of the record or, if there is none, the one that is the driver of the existing Bucket, or else of
	// the class. It is nil if there is no such PavProvisioner.
	provisioner *pavv1.PavProvisioner

	// record is the record of the claim; nil if it does not exist.
	record *pavv1.PavBucket

	// bucket is the Bucket that is the claim's, that it asks for, or that has the name of one that would be made for it; nil if there is
	// none.
	bucket *cosiv2.Bucket

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
func isOf(b *cosiv2.Bucket, name types.NamespacedName, uid types.UID) bool {
	ref := b.Spec.BucketClaimRef
	return ref.Namespace == name.Namespace && ref.Name == name.Name && ref.UID == uid
}

// isMade reports whether PaV made the Bucket for the claim. Only such a Bucket is ever deleted.
func (o claimObservation) isMade() bool {
	return o.isBound() && o.bucket.Labels[pavv1.ProvisionerLabel] != "" && o.bucket.Name == cosiv2.BucketOf(o.uid)
}

// isRetentionDue reports whether an administrator has changed the policy of the Bucket to Retain, and the record is to be told. A change to
// Delete is not passed on: it may be the record that an administrator has changed. So the bucket is deleted only if both say so.
func (o claimObservation) isRetentionDue() bool {
	return o.isKept() && o.isBound() && o.bucket.Spec.DeletionPolicy == cosiv2.DeletionPolicyRetain && o.record.Spec.ReclaimPolicy == pavv1.BucketDelete
}

// isBucketDeletable reports whether the Bucket of a claim that has no bucket any more is to be deleted. That of a retained bucket stays: as
// long as there is a record and, by its policy, also after an administrator has deleted that.
func (o claimObservation) isBucketDeletable() bool {
	return o.record == nil && o.isMade() && (o.bucket.Spec.DeletionPolicy == cosiv2.DeletionPolicyDelete || o.bucket.Status.BucketID == "")
}

// isBucketLeft reports whether the Bucket of a claim that has no bucket any more is to be deleted, or still has a finalizer.
func (o claimObservation) isBucketLeft() bool {
	return o.isBound() && (isHeld(o.bucket) || o.isBucketDeletable() && o.bucket.DeletionTimestamp == nil)
}

// isTaken reports whether the Bucket that the claim would have is another's. That of a claim that asks for an existing one is not: there,
// the record counts.
func (o claimObservation) isTaken() bool {
	return !o.isExisting() && o.bucket != nil && (!o.isBound() || o.bucket.Spec.DriverName != o.record.Spec.Provisioner)
}

// isRenamed reports whether the status of the claim names another Bucket than the claim's.
func (o claimObservation) isRenamed() bool {
	shown := o.claim.Status.BoundBucketName
	return shown != "" && shown != o.bucketName()
}

// isShown reports whether the claim and its Bucket show the bucket. A Bucket of an administrator that is gone is not made again.
func (o claimObservation) isShown() bool {
	switch {
	case !isHeld(o.claim), !equality.Semantic.DeepEqual(o.claim.Status, o.claimStatus()):
		return false
	case o.bucket == nil:
		return o.isExisting()
	default:
		return !o.needsFinalizer() && equality.Semantic.DeepEqual(o.bucket.Status, o.bucketStatus())
	}
}

// isFailureShown reports whether a claim that is being deleted shows why its bucket could not be deleted. There may have been no attempt yet.
func (o claimObservation) isFailureShown() bool {
	failure := o.record.Status.DeletionFailure
	return o.claim == nil || failure == nil || equality.Semantic.DeepEqual(o.claim.Status.Error, errorOf(failure))
}

// needsFinalizer reports whether the Bucket is to get the finalizer. One that is being deleted gets none.
func (o claimObservation) needsFinalizer() bool {
	return o.bucket.DeletionTimestamp == nil && !isHeld(o.bucket)
}

// claimStatus returns the status that the claim is to have.
func (o claimObservation) claimStatus() cosiv2.BucketClaimStatus {
	return cosiv2.BucketClaimStatus{
		BoundBucketName: o.bucketName(), ReadyToUse: o.isReady(), Protocols: o.protocols(o.claim.Status.Protocols), Error: errorOf(o.record.Status.Failure),
	}
}

// bucketStatus returns the status that the Bucket is to have. What identifies a bucket never changes.
func (o claimObservation) bucketStatus() cosiv2.BucketStatus {
	was := o.bucket.Status
	status := cosiv2.BucketStatus{
		ReadyToUse: o.isReady(), BucketID: was.BucketID, Protocols: o.protocols(was.Protocols), BucketInfo: was.BucketInfo, Error: errorOf(o.record.Status.Failure),
	}
	if !status.ReadyToUse {
		return status
	}
	if status.BucketID == "" {
		status.BucketID = o.record.Status.BucketID
	}
	status.BucketInfo = o.info()
	return status
}

// protocols returns the protocols that an object is to show, which are those that it shows until the bucket is ready: they cannot be removed.
func (o claimObservation) protocols(shown []cosiv2.Protocol) []cosiv2.Protocol {
	if has := o.record.Status.Protocols; o.isReady() && len(has) > 0 {
		return namesOf(has)
	}
	return shown
}

// info returns what clients need to know of the bucket, as far as it is known; nil for nothing.
func (o claimObservation) info() map[string]string {
	var info map[string]string
	for _, p := range o.record.Status.Protocols {
		for key, value := range protocol.COSIBucketInfo(o.record, p) {
			if value == "" {
				continue
			}
			if info == nil {
				info = map[string]string{}
			}
			info[key] = value
		}
	}
	return info
}

// isRecordOf reports whether a PavBucket is the record of the claim.
func (o claimObservation) isRecordOf(b *pavv1.PavBucket) bool {
	return bucketapi.IsRecordOfClaim(b, pavv1.BucketAPICOSI2, o.name, o.uid)
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
		return cosiv2.BucketOf(o.uid)
	}
}

// isHeld reports whether an object has the finalizer.
func isHeld(object client.Object) bool {
	return controllerutil.ContainsFinalizer(object, cosiv2.Finalizer)
}
