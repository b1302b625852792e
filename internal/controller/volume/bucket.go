package volume

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// bucket is what is known of the bucket that a volume is.
type bucket struct {
	// record is the PavBucket, and access the PavBucketAccess of the volume. Each is nil if it does not exist.
	record *pavv1.PavBucket
	access *pavv1.PavBucketAccess

	// taken says that the name of the PavBucket is that of a record which is not about the volume's bucket.
	taken bool
}

// ofBucket reports whether the volume is a bucket.
func (o observation) ofBucket() bool { return o.volume.Spec.BucketRef != nil }

// ownsBucket reports whether the bucket is the volume's own: it is created for the volume, and deleted with it.
func (o observation) ownsBucket() bool { return o.ofBucket() && !o.volume.Spec.BucketRef.IsClaimed() }

// bucketID returns the identifier of the bucket that the volume is, which is its handle; "" if it is none, or that is not known yet.
func (o observation) bucketID() string {
	switch {
	case !o.ofBucket():
		return ""
	case o.volume.Spec.BucketRef.BucketID != "":
		return o.volume.Spec.BucketRef.BucketID
	case o.bucket == nil || o.bucket.record == nil:
		return ""
	default:
		return o.bucket.record.Status.BucketID
	}
}

// bucketLeft reports whether the volume has access to its bucket, or has a bucket of its own that does not belong to the administrator.
func (o observation) bucketLeft() bool {
	return o.bucket != nil && (o.bucket.access != nil || o.ownBucketLeft())
}

func (o observation) ownBucketLeft() bool {
	return o.ownsBucket() && o.bucket.record != nil && o.bucket.record.Status.Phase != pavv1.BucketRetained
}

// hasAccess reports whether the Secret of the volume has credentials.
func (o observation) hasAccess() bool {
	access := o.bucket.access
	return access != nil && !access.Spec.Released && access.Status.Current != nil
}

// isBucketShown reports whether the status says what staging needs to know of the bucket, and nodes may begin to stage the volume.
func (o observation) isBucketShown() bool {
	shown := &pavv1.PavVolumeStatus{}
	if o.bucket.record == nil || !o.hasAccess() {
		return false
	}
	o.showBucket(shown)
	return equality.Semantic.DeepEqual(shown.Bucket, o.volume.Status.Bucket) && equality.Semantic.DeepEqual(shown.BucketAccount, o.volume.Status.BucketAccount)
}

// showBucket records what staging needs to know of the bucket.
func (o observation) showBucket(status *pavv1.PavVolumeStatus) {
	record := o.bucket.record
	status.Bucket = &pavv1.VolumeBucket{ID: record.Status.BucketID, Info: record.Status.Info, SecretName: o.bucket.access.Spec.Buckets[0].SecretName}
	status.BucketAccount = new(o.bucket.access.Status.Current.Number)
}

// hideBucket records that no node may begin to stage the volume any more.
func hideBucket(status *pavv1.PavVolumeStatus) { status.Bucket, status.BucketAccount = nil, nil }

// bucketGone returns why the bucket cannot be had any more, or "".
func (o observation) bucketGone() string {
	record := o.bucket.record
	switch ref := o.volume.Spec.BucketRef; {
	case record != nil && !record.Spec.Released && record.DeletionTimestamp == nil:
		return ""
	case !ref.IsClaimed():
		return fmt.Sprintf("PavBucket %q, whose bucket is the volume, was given up by an administrator, or is gone", ref.Name)
	default:
		return fmt.Sprintf("%s %q, whose bucket is the volume, was deleted", ref.Claim.Kind, ref.Claim.Namespace+"/"+ref.Claim.Name)
	}
}

// accessRecord returns the name of the PavBucketAccess of a volume.
func accessRecord(volume *pavv1.PavVolume) string {
	return protocol.AccessRecord(volume.Spec.ClaimRef.UID)
}

// gatherBucket reads the bucket that the volume is. Records of the names that are others' count as missing.
func (o *observation) gatherBucket(ctx context.Context, reader client.Reader) error {
	ref := o.volume.Spec.BucketRef
	if ref == nil {
		return nil
	}
	b := &bucket{}
	var err error
	if b.record, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: ref.Name}, &pavv1.PavBucket{}); err != nil {
		return err
	}
	if b.taken = b.record != nil && !isBucketOf(b.record, o.volume); b.taken {
		b.record = nil
	}
	if b.access, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: accessRecord(o.volume)}, &pavv1.PavBucketAccess{}); err != nil {
		return err
	}
	if b.access != nil && (b.access.Spec.API != pavv1.BucketAPIVolume || b.access.Spec.Requester.UID != o.volume.Spec.ClaimRef.UID || len(b.access.Spec.Buckets) == 0) {
		b.access = nil
	}
	o.bucket = b
	return nil
}

// isBucketOf reports whether a PavBucket is that which the volume is.
func isBucketOf(record *pavv1.PavBucket, volume *pavv1.PavVolume) bool {
	ref := volume.Spec.BucketRef
	switch {
	case record.Spec.Provisioner != volume.Spec.Provisioner:
		return false
	case ref.IsClaimed():
		return record.Spec.API != pavv1.BucketAPIVolume && record.Spec.ClaimRef.UID == ref.Claim.UID && (record.Status.BucketID == ref.BucketID || record.Status.BucketID == "")
	default:
		return record.Spec.API == pavv1.BucketAPIVolume && record.Spec.ClaimRef.UID == volume.Spec.ClaimRef.UID
	}
}

// ofBucketAccess maps an access of a volume to the volume.
func ofBucketAccess(_ context.Context, object client.Object) []ctrl.Request {
	access, ok := object.(*pavv1.PavBucketAccess)
	if !ok || access.Spec.API != pavv1.BucketAPIVolume {
		return nil
	}
	return named(protocol.VolumeName(access.Spec.Requester.UID))
}

// ofBucketRecord maps a PavBucket to the volumes that are its bucket.
func (r *Reconciler) ofBucketRecord(ctx context.Context, object client.Object) []ctrl.Request {
	var requests []ctrl.Request
	if record, ok := object.(*pavv1.PavBucket); ok && record.Spec.API == pavv1.BucketAPIVolume {
		requests = named(protocol.VolumeName(record.Spec.ClaimRef.UID)) // which may be gone
	}
	volumes := &pavv1.PavVolumeList{}
	if err := r.Client.List(ctx, volumes, client.MatchingFields{reconcile.VolumesByBucket: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look volumes up by their bucket", observability.Bucket, object.GetName())
		return requests
	}
	for i := range volumes.Items {
		requests = append(requests, named(volumes.Items[i].Name)...)
	}
	return requests
}

// settleBucket gives up what a PavVolume that does not exist any more has left of its name: the access of the volume, when no node has it
// staged, and then a bucket of its own, which belongs to the administrator from then on. The record of a volume in use is removed only by
// force; that of a retained one has given up both.
func (r *Reconciler) settleBucket(ctx context.Context, name string) error {
	uid, ok := strings.CutPrefix(name, protocol.VolumeName(""))
	if !ok || uid == "" {
		return nil
	}
	access, err := reconcile.Optional(ctx, r.Client, client.ObjectKey{Name: protocol.AccessRecord(types.UID(uid))}, &pavv1.PavBucketAccess{})
	if err != nil {
		return err
	}
	if access != nil {
		return r.settleAccess(ctx, name, access)
	}
	record, err := reconcile.Optional(ctx, r.Client, client.ObjectKey{Name: protocol.BucketRecord(types.UID(uid))}, &pavv1.PavBucket{})
	if err != nil || record == nil || record.Spec.API != pavv1.BucketAPIVolume || record.Spec.Released {
		return err
	}
	if err := r.checkGone(ctx, name); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("giving up the bucket of a PavVolume that is gone", observability.Bucket, record.Name)
	return r.giveUpBucket(ctx, record, corev1.PersistentVolumeReclaimRetain)
}

// settleAccess gives up the access of a volume whose PavVolume is gone. The end of its last stage brings the next pass.
func (r *Reconciler) settleAccess(ctx context.Context, name string, access *pavv1.PavBucketAccess) error {
	if access.Spec.API != pavv1.BucketAPIVolume || access.Spec.Released {
		return nil
	}
	if err := r.checkGone(ctx, name); err != nil {
		return err
	}
	staged, err := r.isStaged(ctx, name)
	if err != nil || staged {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("giving up the access of a PavVolume that is gone", observability.Access, access.Name)
	return r.giveUpAccess(ctx, access)
}

// checkGone asks the API server whether there is no PavVolume of a name.
func (r *Reconciler) checkGone(ctx context.Context, name string) error {
	volume, err := reconcile.Optional(ctx, r.Live, types.NamespacedName{Name: name}, &pavv1.PavVolume{})
	if err == nil && volume != nil {
		err = reconcile.ErrStale
	}
	return err
}
