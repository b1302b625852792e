package bucket

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// gather reads everything that the decision about a bucket depends on.
func (r *Reconciler) gather(ctx context.Context, record *pavv1.PavBucket) (observation, error) {
	o := observation{record: record, now: r.Now()}
	o.contended = r.slots.Contended(record.Spec.Provisioner) || r.Turns.IsAwaited(turnOf(record.Name))
	o.retry = pavv1.RetryRequested(record, record.Status.LastHandledRetry, o.now)
	var err error
	if o.Found, err = r.runs.Find(ctx, record); err != nil {
		return o, err
	}
	if o.provisioner, err = reconcile.Optional(ctx, r.Client, client.ObjectKey{Name: record.Spec.Provisioner}, &pavv1.PavProvisioner{}); err != nil {
		return o, err
	}
	storage := reconcile.StorageOfBucket(record)
	others, err := reconcile.BucketsOf(ctx, r.Client, storage)
	if err != nil {
		return o, err
	}
	o.holder, o.owner = holderIn(others, storage, record), ownerIn(others, storage, record)
	o.accesses, err = r.accessesTo(ctx, recordsOf(others, storage, record))
	return o, err
}

// recordsOf returns the names of the records whose accesses keep a record: of one whose bucket is to be deleted, also those that use the
// bucket as one that exists.
func recordsOf(records []pavv1.PavBucket, storage string, record *pavv1.PavBucket) []string {
	names := []string{record.Name}
	if record.Spec.ExistingBucketID != "" {
		return names
	}
	for i := range records {
		if other := &records[i]; other.Name != record.Name && other.Spec.ExistingBucketID != "" && reconcile.StorageOfBucket(other) == storage {
			names = append(names, other.Name)
		}
	}
	return names
}

// accessesTo returns who has access to a bucket, by any of its records, according to the cache.
func (r *Reconciler) accessesTo(ctx context.Context, records []string) ([]string, error) {
	var names []string
	for _, name := range records {
		accesses, err := reconcile.AccessesTo(ctx, r.Client, name)
		if err != nil {
			return nil, err
		}
		for i := range accesses {
			names = append(names, describe(&accesses[i]))
		}
	}
	return names, nil
}

// holderIn returns the name of another record that has the bucket, and had it before this one, or "". Of two that ask for one name at the
// same time, the one that was written first has it.
func holderIn(records []pavv1.PavBucket, storage string, record *pavv1.PavBucket) string {
	for _, other := range reconcile.HoldersOfBucket(records, storage, record.Name) {
		if holdsBefore(other, record) {
			return other.Name
		}
	}
	return ""
}

// ownerIn returns the name of another record that has the bucket too, however old it is, or "": its data must not be deleted. Of two whose
// buckets are to be deleted, the one that holds it before does not wait for the other.
func ownerIn(records []pavv1.PavBucket, storage string, record *pavv1.PavBucket) string {
	for _, other := range reconcile.HoldersOfBucket(records, storage, record.Name) {
		goes := other.Status.Phase == pavv1.BucketDeleting || other.Status.Step == pavv1.BucketReverting
		if standingOf(other) == holds && (!goes || holdsBefore(other, record)) {
			return other.Name
		}
	}
	return ""
}

// standing says what a record has of its bucket.
type standing int

const (
	wants    standing = iota // nothing was done for it
	attempts                 // a pod may have made a bucket for it, but perhaps not this one
	holds                    // the bucket is the record's
)

// standingOf returns the standing of a record. A bucket that is being reverted is the record's as well: nobody else may have it before.
func standingOf(b *pavv1.PavBucket) standing {
	switch {
	case b.Status.Phase != "" && b.Status.Phase != pavv1.BucketPending, b.Status.Step == pavv1.BucketReverting:
		return holds
	case b.Status.Attempt > 0:
		return attempts
	default:
		return wants
	}
}

// holdsBefore reports whether a record has a bucket rather than another record of the same: more was done for it, or it was written first. An
// older record does not get the bucket that another one has: the identifiers which a definition makes for two claims may be equal.
func holdsBefore(one, other *pavv1.PavBucket) bool {
	if a, b := standingOf(one), standingOf(other); a != b {
		return a > b
	}
	if !one.CreationTimestamp.Equal(&other.CreationTimestamp) {
		return one.CreationTimestamp.Before(&other.CreationTimestamp)
	}
	return one.Name < other.Name
}

// confirmed decides again with the objects that the API server has, before a step that cannot be undone. If that gives another step, the
// cache is behind, and the error is reconcile.ErrStale.
func (r *Reconciler) confirmed(ctx context.Context, o observation, next rule.Step) (observation, error) {
	live := &pavv1.PavBucket{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(o.record), live); client.IgnoreNotFound(err) != nil {
		return o, fmt.Errorf("reading PavBucket %q: %w", o.record.Name, err)
	}
	if live.UID != o.record.UID || live.ResourceVersion != o.record.ResourceVersion {
		return o, reconcile.ErrStale
	}
	live.SetManagedFields(nil)
	o.record = live // with its copies of objects, which the cache does not keep
	var err error
	if o.provisioner, err = reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: live.Spec.Provisioner}, &pavv1.PavProvisioner{}); err != nil {
		return o, err
	}
	storage := reconcile.StorageOfBucket(live)
	records, err := r.liveRecords(ctx, live.Spec.Provisioner)
	if err != nil {
		return o, err
	}
	o.holder, o.owner = holderIn(records, storage, live), ownerIn(records, storage, live)
	if live.Spec.Released {
		if o.accesses, err = r.liveAccesses(ctx, recordsOf(records, storage, live)); err != nil {
			return o, err
		}
	}
	if decide(o).Step != next {
		return o, reconcile.ErrStale
	}
	return o, nil
}

// liveHolder asks the API server who else has a bucket; see holderIn.
func (r *Reconciler) liveHolder(ctx context.Context, record *pavv1.PavBucket, storage string) (string, error) {
	records, err := r.liveRecords(ctx, record.Spec.Provisioner)
	return holderIn(records, storage, record), err
}

// liveRecords returns all records of a provisioner as the API server has them.
func (r *Reconciler) liveRecords(ctx context.Context, provisioner string) ([]pavv1.PavBucket, error) {
	records := &pavv1.PavBucketList{}
	if err := r.Live.List(ctx, records, client.MatchingLabels{pavv1.ProvisionerLabel: provisioner}); err != nil {
		return nil, fmt.Errorf("listing the PavBuckets of PavProvisioner %q: %w", provisioner, err)
	}
	return records.Items, nil
}

// liveAccesses returns who has access to a bucket, by any of its records, as the API server has them.
func (r *Reconciler) liveAccesses(ctx context.Context, buckets []string) ([]string, error) {
	records := &pavv1.PavBucketAccessList{}
	if err := r.Live.List(ctx, records); err != nil {
		return nil, fmt.Errorf("listing the PavBucketAccesses: %w", err)
	}
	var names []string
	for i := range records.Items {
		for _, b := range records.Items[i].Spec.Buckets {
			if slices.Contains(buckets, b.Bucket) {
				names = append(names, describe(&records.Items[i]))
			}
		}
	}
	return names, nil
}

// describe says who has access to a bucket: a volume, or who has the account of another access.
func describe(access *pavv1.PavBucketAccess) string {
	if access.Spec.API != pavv1.BucketAPIVolume {
		return fmt.Sprintf("PavBucketAccess %q", access.Name)
	}
	by := access.Spec.Requester
	return fmt.Sprintf("PersistentVolume %q of claim %s/%s, which is the bucket,", protocol.VolumeName(by.UID), by.Namespace, by.Name)
}
