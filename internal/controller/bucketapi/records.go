package bucketapi

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// IsRecordOfClaim reports whether a PavBucket is the record of the claim that an API has, or had, under a name, with a UID.
func IsRecordOfClaim(b *pavv1.PavBucket, api pavv1.BucketAPI, name types.NamespacedName, uid types.UID) bool {
	ref := b.Spec.ClaimRef
	return b.Spec.API == api && ref.UID == uid && ref.Namespace == name.Namespace && ref.Name == name.Name
}

// IsRecordOfAccess reports whether a PavBucketAccess is the record of the object of a kind that an API has, or had, under a name, with a
// UID.
func IsRecordOfAccess(a *pavv1.PavBucketAccess, api pavv1.BucketAPI, kind string, name types.NamespacedName, uid types.UID) bool {
	ref := a.Spec.Requester
	return a.Spec.API == api && ref.Kind == kind && ref.UID == uid && ref.Namespace == name.Namespace && ref.Name == name.Name
}

// AccessesTo returns the objects that have access to a PavBucket, or ask for it, according to the cache.
func AccessesTo(ctx context.Context, cache client.Reader, record string) ([]string, error) {
	accesses, err := reconcile.AccessesTo(ctx, cache, record)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(accesses))
	for i := range accesses {
		requester := accesses[i].Spec.Requester
		names[i] = fmt.Sprintf("%s %s/%s", requester.Kind, requester.Namespace, requester.Name)
	}
	slices.Sort(names)
	return names, nil
}

// HolderOf returns the claim of an API, other than that of a UID, whose record has an existing bucket under a name; "" for none. Another
// program may have given that bucket to a further claim.
func HolderOf(ctx context.Context, cache client.Reader, api pavv1.BucketAPI, provisioner, bucketName string, uid types.UID) (string, error) {
	records := &pavv1.PavBucketList{}
	if err := cache.List(ctx, records, client.MatchingFields{reconcile.BucketsByProvisioner: provisioner}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("looking up who has Bucket %q: %w", bucketName, err)
	}
	for i := range records.Items {
		b := &records.Items[i].Spec
		if b.API == api && b.ExistingBucketID != "" && b.BucketName == bucketName && b.ClaimRef.UID != uid {
			return b.ClaimRef.Namespace + "/" + b.ClaimRef.Name, nil
		}
	}
	return "", nil
}

// ReleaseBucket gives up a bucket whose claim is gone or going.
func ReleaseBucket(ctx context.Context, writer client.Client, record *pavv1.PavBucket) error {
	given := record.DeepCopy()
	given.Spec.Released = true
	return Patch(ctx, writer, record, given)
}

// ReleaseAccess gives up the accounts of an access that is gone or going.
func ReleaseAccess(ctx context.Context, writer client.Client, record *pavv1.PavBucketAccess) error {
	given := record.DeepCopy()
	given.Spec.Released = true
	return Patch(ctx, writer, record, given)
}

// Rotate passes a request for a new account on to the record.
func Rotate(ctx context.Context, writer client.Client, record *pavv1.PavBucketAccess, request Rotation) error {
	changed := record.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, pavv1.RotateAnnotation, request.Requested)
	return Patch(ctx, writer, record, changed)
}
