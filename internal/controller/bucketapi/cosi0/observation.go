package cosi0

import (
	"cmp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/protocol"
)

// observation has everything that the decision about a Bucket depends on. There is one for each Bucket of a name: the one that exists, and
// former ones of which something is left.
type observation struct {
	// name is the name of the Bucket, and uid its UID.
	name types.NamespacedName
	uid  types.UID

	// now is when the observation was made.
	now time.Time

	// object is the Bucket; nil if it is gone, or was replaced by one of another UID.
	object *cosiv0.Bucket

	// class is the BucketClass as the record has it or, if there is no record, as it is; nil if neither has it.
	class *cosiv0.BucketClass

	// provisioner is the PavProvisioner of the record. If there is none, it is that of the class or, of a Bucket that is being deleted, the
	// one that the label of the Bucket names. It is nil if there is no such PavProvisioner.
	provisioner *pavv1.PavProvisioner

	// bucket and access are the records of the Bucket; nil if they do not exist.
	bucket *pavv1.PavBucket
	access *pavv1.PavBucketAccess

	// content is the BucketContent that PaV wrote for the Bucket, and other is another one that has its name. At least one of them is nil.
	content, other *cosiv0.BucketContent

	// remembered says that the Bucket had a record.
	remembered bool
}

// wanted reports whether the Bucket exists, and is not being deleted.
func (o observation) wanted() bool { return o.object != nil && o.object.DeletionTimestamp == nil }

// isOurs reports whether the Bucket is PaV's.
func (o observation) isOurs() bool {
	return o.bucket != nil || o.access != nil || o.content != nil || o.provisioner != nil || o.remembered
}

// isForeign reports whether another provisioner has served the Bucket, whose class has changed since. That is the provisioner's to clean up.
func (o observation) isForeign() bool {
	return o.bucket == nil && o.access == nil && o.provisioner != nil && o.label() != "" && o.label() != o.provisioner.Name
}

// label returns the provisioner that the label of the Bucket names; "" for none.
func (o observation) label() string { return o.object.Labels[cosiv0.ProvisionerLabel] }

// isReleased reports whether a record of the Bucket is given up, which cannot be taken back.
func (o observation) isReleased() bool {
	return o.bucket != nil && o.bucket.Spec.Released || o.access != nil && o.access.Spec.Released
}

// isKept reports whether the bucket is still the Bucket's. One that is retained is the administrator's.
func (o observation) isKept() bool {
	return o.bucket != nil && o.bucket.Status.Phase != pavv1.BucketRetained
}

// isGranted reports whether clients can use the bucket.
func (o observation) isGranted() bool {
	return o.bucket != nil && o.bucket.Status.Phase == pavv1.BucketReady && o.access != nil && o.access.Status.Current != nil
}

// isShown reports whether the Bucket and its BucketContent show the bucket.
func (o observation) isShown() bool {
	return o.content != nil && shows(o.content, o) && o.object.Status == o.boundStatus()
}

// boundStatus returns the status of a Bucket whose bucket clients can use.
func (o observation) boundStatus() cosiv0.BucketStatus {
	return cosiv0.BucketStatus{BucketContentName: o.contentName(), Phase: cosiv0.BucketBound}
}

// isHeld reports whether the Bucket has the finalizer.
func (o observation) isHeld() bool {
	return o.object != nil && controllerutil.ContainsFinalizer(o.object, cosiv0.Finalizer)
}

// isHeldAsPaVs reports whether the Bucket has what hold gives it.
func (o observation) isHeldAsPaVs() bool { return o.isHeld() && o.label() == o.bucket.Spec.Provisioner }

// rotation returns the request for a new account that the record does not have yet.
func (o observation) rotation() bucketapi.Rotation { return bucketapi.RotationOf(o.object, o.access) }

// isRotationDue reports whether the request for a new account is to be passed on.
func (o observation) isRotationDue() bool { return o.rotation().IsDue(o.now) }

// nextRotation returns when to look again at a request for a new account; 0 for never.
func (o observation) nextRotation() time.Duration { return o.rotation().Next(o.now) }

// isBucketOf reports whether a PavBucket is the record of the Bucket, and isAccessOf the same of a PavBucketAccess.
func (o observation) isBucketOf(b *pavv1.PavBucket) bool {
	return bucketapi.IsRecordOfClaim(b, pavv1.BucketAPICOSI0, o.name, o.uid)
}

func (o observation) isAccessOf(a *pavv1.PavBucketAccess) bool {
	return bucketapi.IsRecordOfAccess(a, pavv1.BucketAPICOSI0, kind, o.name, o.uid)
}

// isContentOf reports whether PaV wrote a BucketContent for a Bucket. Labels and references can be copied: those that PaV writes have the UID in
// their name as well.
func isContentOf(content *cosiv0.BucketContent, name types.NamespacedName, uid types.UID) bool {
	ref := content.Spec.BucketRef
	return content.Labels[pavv1.ProvisionerLabel] != "" && strings.HasSuffix(content.Name, cosiv0.ContentOf("", uid)) &&
		ref != nil && ref.Namespace == name.Namespace && ref.Name == name.Name && ref.UUID == uid
}

// contentName returns the name of the BucketContent; "" if it is not known. The class decides which one it is. When the Bucket has no bucket
// any more, or the class is not known, it is that of any BucketContent of the Bucket: there may be one of another class, if the records were
// removed by force.
func (o observation) contentName() string {
	switch {
	case o.content != nil && (o.class == nil || !o.wanted() && !o.isKept()):
		return o.content.Name
	case o.class != nil:
		return cosiv0.ContentOf(o.class.Name, o.uid)
	default:
		return ""
	}
}

// bucketRecord returns the name of the PavBucket of the Bucket, and accessRecord that of its PavBucketAccess.
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

// secretOf returns the Secret of which the BucketContent tells: the one that the class names or, if it names none, that of the Bucket.
func (o observation) secretOf() cosiv0.SecretReference {
	if o.class != nil && o.class.SecretRef != nil {
		return *o.class.SecretRef
	}
	return cosiv0.SecretReference{Namespace: o.name.Namespace, Name: o.access.Spec.Buckets[0].SecretName}
}

// accessMode returns what the account of the Bucket may do, as the proposal has it.
func (o observation) accessMode() cosiv0.AccessMode {
	return cmp.Or(o.class.AccessMode, cosiv0.AccessReadWrite)
}
