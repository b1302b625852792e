package protocol

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Reasons of events about buckets.
const (
	BucketCreationFailed  = "BucketCreationFailed"
	BucketUpdateFailed    = "BucketUpdateFailed"
	BucketWaiting         = "BucketWaiting"
	BucketDeletionFailed  = "BucketDeletionFailed"
	BucketDeletionWaiting = "BucketDeletionWaiting"
)

// claimKinds are the kinds of the objects that claim buckets, by API.
var claimKinds = map[pavv1.BucketAPI]metav1.TypeMeta{
	pavv1.BucketAPIClaim:  {APIVersion: "objectbucket.io/v1alpha1", Kind: "ObjectBucketClaim"},
	pavv1.BucketAPICOSI1:  {APIVersion: "objectstorage.k8s.io/v1alpha1", Kind: "BucketClaim"},
	pavv1.BucketAPICOSI2:  {APIVersion: "objectstorage.k8s.io/v1alpha2", Kind: "BucketClaim"},
	pavv1.BucketAPIVolume: {APIVersion: "v1", Kind: "PersistentVolumeClaim"},
}

// ClaimOfBucket returns the claim of a PavBucket, as far as events need it; nil if the API of the record is not known.
func ClaimOfBucket(b *pavv1.PavBucket) *metav1.PartialObjectMetadata {
	kind, known := claimKinds[b.Spec.API]
	if !known {
		return nil
	}
	ref := b.Spec.ClaimRef
	return &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}}
}
