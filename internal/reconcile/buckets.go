package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// BucketStorage returns the key of a bucket in a store of a provisioner.
func BucketStorage(provisioner, store, id string) string {
	return Storage(provisioner, store+"\x00"+id)
}

// StorageOfBucket returns the key of the bucket that a PavBucket has or will have.
func StorageOfBucket(b *pavv1.PavBucket) string {
	return BucketStorage(b.Spec.Provisioner, b.Spec.Store, BucketID(b))
}

// BucketID returns what identifies the bucket of a record in its store, as far as that is known.
func BucketID(b *pavv1.PavBucket) string {
	return cmp.Or(b.Status.BucketID, b.Spec.ExistingBucketID, b.Status.PlannedBucketID, b.Spec.BucketName)
}

// HoldersOfBucket returns the PavBuckets, other than one of a name, that have a bucket, retained ones included. Of records that only use
// a bucket that exists already, there may be any number: they hold nothing.
func HoldersOfBucket(records []pavv1.PavBucket, storage, name string) []*pavv1.PavBucket {
	var holders []*pavv1.PavBucket
	for i := range records {
		if b := &records[i]; b.Name != name && b.Spec.ExistingBucketID == "" && StorageOfBucket(b) == storage {
			holders = append(holders, b)
		}
	}
	return holders
}

// BucketsOf returns the PavBuckets of a storage, according to the cache.
func BucketsOf(ctx context.Context, cache client.Reader, storage string) ([]pavv1.PavBucket, error) {
	records := &pavv1.PavBucketList{}
	if err := cache.List(ctx, records, client.MatchingFields{BucketsByStorage: Bucket(storage)}); err != nil {
		return nil, fmt.Errorf("looking up who has a bucket: %w", err)
	}
	return slices.DeleteFunc(records.Items, func(b pavv1.PavBucket) bool { return StorageOfBucket(&b) != storage }), nil
}

// AccessesTo returns the PavBucketAccesses of a PavBucket that have accounts, or are about to, according to the cache.
func AccessesTo(ctx context.Context, cache client.Reader, bucket string) ([]pavv1.PavBucketAccess, error) {
	records := &pavv1.PavBucketAccessList{}
	if err := cache.List(ctx, records, client.MatchingFields{AccessesByBucket: bucket}); err != nil {
		return nil, fmt.Errorf("looking up the accesses to PavBucket %q: %w", bucket, err)
	}
	return records.Items, nil
}
