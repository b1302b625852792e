package protocol

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Reasons of events about buckets.
const (
	BucketCreationFailed  = "BucketCreationFailed"
	BucketUpdateFailed    = "BucketUpdateFailed"
	BucketWaiting         = "BucketWaiting"
	BucketDeletionFailed  = "BucketDeletionFailed"
	BucketDeletionWaiting = "BucketDeletionWaiting"
	BucketLeft            = "BucketLeft"
)

// claimKinds are the kinds of the objects that claim buckets, by API.
var claimKinds = map[pavv1.BucketAPI]metav1.TypeMeta{
	pavv1.BucketAPIClaim:  {APIVersion: "objectbucket.io/v1alpha1", Kind: "ObjectBucketClaim"},
	pavv1.BucketAPICOSI1:  {APIVersion: "objectstorage.k8s.io/v1alpha1", Kind: "BucketClaim"},
	pavv1.BucketAPICOSI2:  {APIVersion: "objectstorage.k8s.io/v1alpha2", Kind: "BucketClaim"},
	pavv1.BucketAPICOSI0:  {APIVersion: "cosi.io/v1alpha1", Kind: "Bucket"},
	pavv1.BucketAPIVolume: {APIVersion: "v1", Kind: "PersistentVolumeClaim"},
}

// BucketAPIsOf returns the APIs by which a source of a volume may claim a bucket; none if it claims none. A source has a group and no version:
// which version of COSI it is, the cluster says, which has one. Other groups may have the same kinds, which are those of volume populators
// then.
func BucketAPIsOf(source *corev1.TypedObjectReference) []pavv1.BucketAPI {
	if source.APIGroup == nil {
		return nil
	}
	var apis []pavv1.BucketAPI
	for _, api := range []pavv1.BucketAPI{pavv1.BucketAPIClaim, pavv1.BucketAPICOSI1, pavv1.BucketAPICOSI2} {
		if kind := claimKinds[api]; source.Kind == kind.Kind && *source.APIGroup == kind.GroupVersionKind().Group {
			apis = append(apis, api)
		}
	}
	return apis
}

// BucketClaimKind returns the kind of the objects that claim buckets by an API.
func BucketClaimKind(api pavv1.BucketAPI) schema.GroupVersionKind {
	kind := claimKinds[api]
	return kind.GroupVersionKind()
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

// Reasons of events about accesses to buckets.
const (
	AccessGrantedEvent      = "AccessGranted"
	AccessGrantFailed       = "AccessGrantFailed"
	AccessRotatedEvent      = "AccessRotated"
	AccessWaiting           = "AccessWaiting"
	AccessRevocationFailed  = "AccessRevocationFailed"
	AccessRevocationWaiting = "AccessRevocationWaiting"
	SecretNameTaken         = "SecretNameTaken"
	SecretLeft              = "SecretLeft"
	AccountLeft             = "AccountLeft"
)

// requesterKinds are the API versions of the objects that ask for access, by API and kind.
var requesterKinds = map[pavv1.BucketAPI]metav1.TypeMeta{
	pavv1.BucketAPIClaim:  claimKinds[pavv1.BucketAPIClaim],
	pavv1.BucketAPICOSI1:  {APIVersion: "objectstorage.k8s.io/v1alpha1", Kind: "BucketAccess"},
	pavv1.BucketAPICOSI2:  {APIVersion: "objectstorage.k8s.io/v1alpha2", Kind: "BucketAccess"},
	pavv1.BucketAPICOSI0:  claimKinds[pavv1.BucketAPICOSI0],
	pavv1.BucketAPIVolume: claimKinds[pavv1.BucketAPIVolume],
}

// RequesterOfAccess returns the object that asks for access, as far as events and references need it; nil if the API of the record is
// not known.
func RequesterOfAccess(a *pavv1.PavBucketAccess) *metav1.PartialObjectMetadata {
	kind, known := requesterKinds[a.Spec.API]
	if !known {
		return nil
	}
	ref := a.Spec.Requester
	return &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}}
}
