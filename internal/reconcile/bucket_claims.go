package reconcile

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// The indexes by the object that asks for a bucket, or for access.
const (
	// bucketsByClaim finds PavBuckets by the bucket of the key of their claim.
	bucketsByClaim = "bucket.claim"

	// accessesByRequester finds PavBucketAccesses by the bucket of the key of their requester.
	accessesByRequester = "access.requester"
)

// keyOfClaim returns the key of an object that asks for a bucket, or for access. Objects that were created again have the same.
func keyOfClaim(api pavv1.BucketAPI, namespace, name string) string {
	return string(api) + "/" + namespace + "/" + name
}

func claimOfBucket(b *pavv1.PavBucket) string {
	return keyOfClaim(b.Spec.API, b.Spec.ClaimRef.Namespace, b.Spec.ClaimRef.Name)
}

func requesterOfAccess(a *pavv1.PavBucketAccess) string {
	return keyOfClaim(a.Spec.API, a.Spec.Requester.Namespace, a.Spec.Requester.Name)
}

// BucketsClaimedBy returns the PavBuckets of all claims that an API has, or had, under a name, according to the cache.
func BucketsClaimedBy(ctx context.Context, cache client.Reader, api pavv1.BucketAPI, name types.NamespacedName) ([]pavv1.PavBucket, error) {
	key, records := keyOfClaim(api, name.Namespace, name.Name), &pavv1.PavBucketList{}
	if err := cache.List(ctx, records, client.MatchingFields{bucketsByClaim: Bucket(key)}); err != nil {
		return nil, fmt.Errorf("looking up the PavBuckets of claim %q: %w", name, err)
	}
	return slices.DeleteFunc(records.Items, func(b pavv1.PavBucket) bool { return claimOfBucket(&b) != key }), nil
}

// AccessesRequestedBy returns the PavBucketAccesses of all requesters that an API has, or had, under a name, according to the cache.
func AccessesRequestedBy(ctx context.Context, cache client.Reader, api pavv1.BucketAPI, name types.NamespacedName) ([]pavv1.PavBucketAccess, error) {
	key, records := keyOfClaim(api, name.Namespace, name.Name), &pavv1.PavBucketAccessList{}
	if err := cache.List(ctx, records, client.MatchingFields{accessesByRequester: Bucket(key)}); err != nil {
		return nil, fmt.Errorf("looking up the PavBucketAccesses of %q: %w", name, err)
	}
	return slices.DeleteFunc(records.Items, func(a pavv1.PavBucketAccess) bool { return requesterOfAccess(&a) != key }), nil
}
