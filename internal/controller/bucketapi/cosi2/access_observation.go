package cosi2

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/protocol"
)

// accessObservation has everything that the decision about a BucketAccess depends on. There is one for each access of a name: the one that
// exists, and former ones of which something is left.
type accessObservation struct {
	// name is the name of the access, and uid its UID.
	name types.NamespacedName
	uid  types.UID

	// now is when the observation was made.
	now time.Time

	// access is nil if it is gone, or was replaced by one of another UID.
	access *cosiv2.BucketAccess

	// class is the BucketAccessClass of an access without a record; nil if it does not exist.
	class *cosiv2.BucketAccessClass

	// provisioner is the PavProvisioner of the record or, if there is none, the one that is the driver of the access or, if it has none yet,
	// of the class. It is nil if there is no such PavProvisioner.
	provisioner *pavv1.PavProvisioner

	// record is the record of the access; nil if it does not exist.
	record *pavv1.PavBucketAccess

	// buckets are the records of the buckets of the record, as far as they exist.
	buckets []*pavv1.PavBucket

	// claims are what an access without a record asks for, in its order.
	claims []askedClaim

	// remembered says that the access had a record.
	remembered bool
}

// askedClaim is a claim to whose bucket access is asked for.
type askedClaim struct {
	cosiv2.BucketClaimAccess

	// claim is the claim, and bucket is its record; nil if they do not exist.
	claim  *cosiv2.BucketClaim
	bucket *pavv1.PavBucket
}

// wanted reports whether the access exists, and is not being deleted.
func (o accessObservation) wanted() bool { return o.access != nil && o.access.DeletionTimestamp == nil }

// isOurs reports whether the access is PaV's. One that is being deleted, has no driver, and whose class is gone, is if a claim of it is:
// nobody else can have served it.
func (o accessObservation) isOurs() bool {
	if o.record != nil || o.provisioner != nil || o.remembered {
		return true
	}
	return o.access != nil && !o.wanted() && o.class == nil && o.access.Status.DriverName == "" &&
		slices.ContainsFunc(o.claims, func(c askedClaim) bool { return c.bucket != nil })
}

// isReleased reports whether the record is given up, which cannot be taken back.
func (o accessObservation) isReleased() bool { return o.record != nil && o.record.Spec.Released }

// isShown reports whether the access shows what its record says.
func (o accessObservation) isShown() bool {
	return isHeld(o.access) && equality.Semantic.DeepEqual(o.access.Status, o.status())
}

// isFailureShown reports whether an access that is being deleted shows why its account could not be revoked. There may have been no attempt
// yet.
func (o accessObservation) isFailureShown() bool {
	failure := o.record.Status.RevocationFailure
	return o.access == nil || failure == nil || equality.Semantic.DeepEqual(o.access.Status.Error, errorOf(failure))
}

// status returns the status that the access is to have. What the status has once, except for readyToUse and error, cannot be changed: after
// a rotation, the record has the present account, and the status the first one.
func (o accessObservation) status() cosiv2.BucketAccessStatus {
	was, spec := o.access.Status, &o.record.Spec
	status := cosiv2.BucketAccessStatus{
		AccountID: was.AccountID, AccessedBuckets: was.AccessedBuckets, DriverName: cmp.Or(was.DriverName, spec.Provisioner),
		AuthenticationType: cmp.Or(was.AuthenticationType, cosiv2.AuthenticationType(spec.AuthenticationType)), Parameters: was.Parameters,
		Error: errorOf(o.record.Status.Failure),
	}
	if len(status.AccessedBuckets) == 0 {
		status.AccessedBuckets = o.accessedBuckets()
	}
	if len(status.Parameters) == 0 {
		status.Parameters = spec.Parameters
	}
	if account := o.record.Status.Current; account != nil {
		status.ReadyToUse, status.AccountID = true, cmp.Or(was.AccountID, account.AccountID, account.AccountName)
	}
	return status
}

// accessedBuckets returns the buckets of the record; nil if they are not all known.
func (o accessObservation) accessedBuckets() []cosiv2.AccessedBucket {
	var accessed []cosiv2.AccessedBucket
	for _, named := range o.record.Spec.Buckets {
		i := slices.IndexFunc(o.buckets, func(b *pavv1.PavBucket) bool { return b.Name == named.Bucket })
		if i < 0 || o.buckets[i].Status.BucketID == "" {
			return nil
		}
		b := o.buckets[i]
		accessed = append(accessed, cosiv2.AccessedBucket{BucketName: b.Spec.BucketName, BucketID: b.Status.BucketID, BucketClaimName: b.Spec.ClaimRef.Name})
	}
	return accessed
}

// rotation returns the request for a new account that the record does not have yet.
func (o accessObservation) rotation() bucketapi.Rotation {
	return bucketapi.RotationOf(o.access, o.record)
}

// isRotationDue reports whether the request for a new account is to be passed on.
func (o accessObservation) isRotationDue() bool { return o.rotation().IsDue(o.now) }

// nextRotation returns when to look again at the request for a new account; 0 for never.
func (o accessObservation) nextRotation() time.Duration { return o.rotation().Next(o.now) }

// isRecordOf reports whether a PavBucketAccess is the record of the access.
func (o accessObservation) isRecordOf(a *pavv1.PavBucketAccess) bool {
	return bucketapi.IsRecordOfAccess(a, pavv1.BucketAPICOSI2, kindAccess, o.name, o.uid)
}

// recordName returns the name of the record.
func (o accessObservation) recordName() string {
	if o.record != nil {
		return o.record.Name
	}
	return protocol.AccessRecord(o.uid)
}
