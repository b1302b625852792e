package cosi1

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
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
	access *cosiv1.BucketAccess

	// class is the BucketAccessClass of an access without a record; nil if it does not exist.
	class *cosiv1.BucketAccessClass

	// provisioner is the PavProvisioner of the record or, if there is none, that of the class; nil if there is no such PavProvisioner.
	provisioner *pavv1.PavProvisioner

	// record is the record of the access; nil if it does not exist.
	record *pavv1.PavBucketAccess

	// claim is the claim that an access without a record names, and bucket is the record of that claim; nil if they do not exist.
	claim  *cosiv1.BucketClaim
	bucket *pavv1.PavBucket

	// remembered says that the access had a record.
	remembered bool
}

// wanted reports whether the access exists, and is not being deleted.
func (o accessObservation) wanted() bool { return o.access != nil && o.access.DeletionTimestamp == nil }

// isOurs reports whether the access is PaV's. One that is being deleted, and whose class is gone, is if its claim is: nobody else can have
// served it.
func (o accessObservation) isOurs() bool {
	return o.record != nil || o.provisioner != nil || o.remembered || !o.wanted() && o.class == nil && o.bucket != nil
}

// isReleased reports whether the record is given up, which cannot be taken back.
func (o accessObservation) isReleased() bool { return o.record != nil && o.record.Spec.Released }

// isHeld reports whether an access has the finalizer.
func (o accessObservation) isHeld() bool {
	return o.access != nil && controllerutil.ContainsFinalizer(o.access, cosiv1.AccessFinalizer)
}

// needsFinalizer reports whether the access is to get COSI's finalizer. It gets it until it shows an account for the first time, and not
// again if someone removes it after that: COSI's sidecar v0.1.0 removes it from the accesses of all drivers whenever one of them changes,
// so that both would go on forever. PaV decides nothing by it: of an access that is gone, the record is revoked all the same.
func (o accessObservation) needsFinalizer() bool {
	return !o.isHeld() && !o.access.Status.AccessGranted
}

// isShown reports whether the access shows what its record says.
func (o accessObservation) isShown() bool {
	return !o.needsFinalizer() && o.access.Status == o.status()
}

// status returns the status that the access is to have.
func (o accessObservation) status() cosiv1.BucketAccessStatus {
	account := o.record.Status.Current
	if account == nil {
		return cosiv1.BucketAccessStatus{}
	}
	return cosiv1.BucketAccessStatus{AccountID: cmp.Or(account.AccountID, account.AccountName), AccessGranted: true}
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
	return bucketapi.IsRecordOfAccess(a, pavv1.BucketAPICOSI1, kindAccess, o.name, o.uid)
}

// recordName returns the name of the record.
func (o accessObservation) recordName() string {
	if o.record != nil {
		return o.record.Name
	}
	return protocol.AccessRecord(o.uid)
}

// protocol returns the protocol that clients are to use; "" if it is not known. If the access names none, it is the first of the bucket.
func (o accessObservation) protocol() pavv1.BucketProtocol {
	if asked := o.access.Spec.Protocol; asked != "" {
		return protocol.FromCOSI(string(asked))
	}
	for _, p := range o.bucket.Status.Protocols {
		return p
	}
	for _, p := range o.bucket.Spec.Protocols {
		return p
	}
	return pavv1.ProtocolS3
}
