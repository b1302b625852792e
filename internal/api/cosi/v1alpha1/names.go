package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// The finalizers of COSI. PaV decides nothing by them: who removes one loses nothing.
const (
	// ClaimFinalizer holds a BucketClaim until its bucket is deleted.
	ClaimFinalizer = "cosi.objectstorage.k8s.io/bucketclaim-protection"

	// BucketFinalizer holds a Bucket while it is a claim's.
	BucketFinalizer = "cosi.objectstorage.k8s.io/bucket-protection"

	// AccessFinalizer holds a BucketAccess until its accounts are revoked.
	AccessFinalizer = "cosi.objectstorage.k8s.io/bucketaccess-protection"

	// AccessedBucketFinalizer holds a Bucket while someone has access to it.
	AccessedBucketFinalizer = "cosi.objectstorage.k8s.io/bucketaccess-bucket-protection"

	// SecretFinalizer holds the Secret of a BucketAccess until its accounts are revoked.
	SecretFinalizer = "cosi.objectstorage.k8s.io/secret-protection"
)

// AccessModeParameter of a BucketAccessClass is the mode of its accesses. COSI leaves parameters to drivers.
const AccessModeParameter = "accessMode"

// BucketInfoKey is the key of the Secret of a BucketAccess that has a BucketInfo.
const BucketInfoKey = "BucketInfo"

// BucketOf returns the name of the Bucket that is made for a claim.
func BucketOf(claim types.UID) string { return "bucket-" + string(claim) }

// BucketInfoOf returns the name that the BucketInfo of an access has.
func BucketInfoOf(access types.UID) string { return "bc-" + string(access) }
