package volume

import (
	"fmt"
	"slices"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// The steps of volumes that are buckets.
const (
	// stepRecordBucket: write the PavBucket of a volume that has a bucket of its own.
	stepRecordBucket step = "RecordBucket"

	// stepRecordAccess: write the PavBucketAccess of the volume.
	stepRecordAccess step = "RecordAccess"

	// stepRecordGranted: the volume has access to its bucket; record handle and capacity.
	stepRecordGranted step = "RecordGranted"

	// stepShowBucket: record what staging needs to know of the bucket, as it is now.
	stepShowBucket step = "ShowBucket"

	// stepHideBucket: record that no node may begin to stage the volume any more.
	stepHideBucket step = "HideBucket"

	// stepReleaseAccess: nobody uses the volume any more; its accounts are to be revoked.
	stepReleaseAccess step = "ReleaseAccess"

	// stepReleaseBucket: the volume has no access any more; its own bucket is to be deleted or retained.
	stepReleaseBucket step = "ReleaseBucket"
)

// usersAgain is how soon PaV looks again who uses a bucket that was never a volume.
const usersAgain = 30 * time.Second

// grantingTable is for a volume that waits for its bucket, or for access to it.
var grantingTable = table{
	{Name: "the volume of a bucket was not needed before it had one", When: observation.unwanted, Then: forget(pavv1.VolumeProvisioned)},
	// A bucket that an earlier attempt may have made, by another provisioner, is the administrator's.
	{Name: "another record has the name of the volume's bucket", When: func(o observation) bool { return o.ownsBucket() && o.bucket.taken }, Then: func(o observation) decision {
		return rule.Waiting(pavv1.VolumeProvisioned, reasonConflict, fmt.Sprintf("PavBucket %q exists and is not this volume's: look for its bucket, and delete the PavBucket; or create the claim again", o.volume.Spec.BucketRef.Name), true)
	}},
	{Name: "the bucket of the volume is not recorded", When: func(o observation) bool { return o.ownsBucket() && o.bucket.record == nil }, Then: to(stepRecordBucket)},
	{Name: "the bucket of the volume is gone", When: func(o observation) bool { return o.bucketGone() != "" }, Then: func(o observation) decision {
		return rule.InDoubt(rule.Waiting(pavv1.VolumeProvisioned, "BucketGone", o.bucketGone()+": delete the claim, as its volume cannot be created any more", true))
	}},
	{Name: "the bucket of the volume is not ready", When: func(o observation) bool { return o.bucket.record.Status.Phase != pavv1.BucketReady }, Then: func(o observation) decision {
		return rule.Waiting(pavv1.VolumeProvisioned, "BucketNotReady", fmt.Sprintf("waiting for PavBucket %q", o.bucket.record.Name), false)
	}},
	{Name: "the access of the volume is not recorded", When: func(o observation) bool { return o.bucket.access == nil }, Then: to(stepRecordAccess)},
	{Name: "the volume has no access yet", When: func(o observation) bool { return !o.hasAccess() }, Then: func(o observation) decision {
		return rule.Waiting(pavv1.VolumeProvisioned, "AccessNotGranted", fmt.Sprintf("waiting for access to the bucket, PavBucketAccess %q", o.bucket.access.Name), false)
	}},
	{Name: "the volume has access to its bucket", When: always, Then: to(stepRecordGranted)},
}

// bucketUseTable is for a volume in use whose status does not say what staging needs to know of its bucket. A claim may have got a volume
// that was retained, or an administrator may have removed a record by force.
var bucketUseTable = table{
	// Until there is another access, nodes would wait for a Secret that is gone, and record an account of the former one.
	{Name: "the access of a volume in use is gone", When: func(o observation) bool { return !o.keepsAccess() && o.volume.Status.Bucket != nil }, Then: to(stepHideBucket)},
	{Name: "the bucket of a volume in use is gone", When: func(o observation) bool { return o.bucketGone() != "" && !o.hasAccess() }, Then: func(o observation) decision {
		return rule.InDoubt(rule.Tell(o.bucketGone() + ", so that the volume gets no access to it, and no node begins to stage the volume"))
	}},
	{Name: "the access of a volume in use is not recorded", When: func(o observation) bool { return o.bucket.access == nil && o.provisioner != nil }, Then: to(stepRecordAccess)},
	{Name: "a volume in use has no access yet", When: func(o observation) bool { return !o.hasAccess() || o.bucket.record == nil }, Then: to(stepDone)},
	{Name: "the account of a volume in use was replaced", When: always, Then: to(stepShowBucket)},
}

// keepsAccess reports whether the volume has access that is not given up, or is being given access.
func (o observation) keepsAccess() bool {
	return o.bucket.access != nil && !o.bucket.access.Spec.Released
}

// releaseTable is for a volume that nobody can use any more, and whose bucket, or access to it, is left.
var releaseTable = table{
	{Name: "the volume of a bucket is still staged", When: observation.isStillStaged, Then: stillHeld},
	{Name: "nodes may begin to stage the volume of a bucket", When: func(o observation) bool { return o.volume.Status.Bucket != nil }, Then: to(stepHideBucket)},
	{Name: "the access of the volume is not released", When: func(o observation) bool { return o.bucket.access != nil && !o.bucket.access.Spec.Released }, Then: to(stepReleaseAccess)},
	{Name: "the access of the volume is being revoked", When: func(o observation) bool { return o.bucket.access != nil }, Then: func(o observation) decision {
		return waitingToDelete("AccessNotRevoked", fmt.Sprintf("waiting until the account of the volume is revoked: PavBucketAccess %q", o.bucket.access.Name), false)
	}},
	{Name: "another object uses the bucket to delete", When: func(o observation) bool {
		return !o.bucket.record.Spec.Released && !o.retainsBucket() && len(o.bucketUsers(o.others)) > 0
	}, Then: stillUsed},
	{Name: "the own bucket of the volume is not released", When: func(o observation) bool { return !o.bucket.record.Spec.Released }, Then: to(stepReleaseBucket)},
	{Name: "the own bucket of the volume is being deleted", When: always, Then: func(o observation) decision {
		return waitingToDelete("BucketNotDeleted", fmt.Sprintf("waiting for the bucket of the volume, PavBucket %q", o.bucket.record.Name), false)
	}},
}

// isStillStaged reports whether nodes have the volume staged. Nobody can have staged one that never had a PersistentVolume.
func (o observation) isStillStaged() bool {
	return (!o.pending() || o.ownPV() != nil) && len(reconcile.StagedOn(o.others)) > 0
}

// retainsBucket reports whether the bucket of the volume stays when the volume goes. One that was never a volume does not.
func (o observation) retainsBucket() bool { return !o.pending() && o.retainedMeanwhile() }

// bucketUsers returns those of the other objects with the volume's handle that keep its bucket from being deleted. Nobody can have staged a
// volume that never had a PersistentVolume.
func (o observation) bucketUsers(others []reconcile.Holder) []reconcile.Holder {
	if !o.pending() || o.ownPV() != nil {
		return others
	}
	return slices.DeleteFunc(slices.Clone(others), func(h reconcile.Holder) bool { return h.Kind == reconcile.KindStage })
}

// stillUsed decides about a volume whose own bucket is to be deleted while other objects have it as their storage. What these objects are
// is not indexed by buckets that are no volumes yet.
func stillUsed(o observation) decision {
	d := waitingToDelete("StillInUse", fmt.Sprintf("%s has the bucket %q as its storage; the bucket is deleted after that object: delete the object or, to keep the bucket, set the reclaim policy to Retain",
		describe(o.bucketUsers(o.others)[0]), o.bucketID()), true)
	if o.pending() {
		d.After = usersAgain
	}
	return d
}

// stillShared decides about a volume whose bucket another object has as its storage.
func stillShared(o observation) decision {
	return rule.Waiting(pavv1.VolumeProvisioned, reasonConflict, fmt.Sprintf("%s has the bucket %q already, and a bucket can be one volume only: delete that, or this claim", describe(o.others[0]), o.volume.Status.Handle), true)
}
