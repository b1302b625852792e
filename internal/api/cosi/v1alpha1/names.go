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

// The keys of a Secret that v1alpha2 of COSI has. Unlike a BucketInfo, applications can read them.
const (
	SecretProtocol    = "COSI_PROTOCOL"
	SecretCertificate = "COSI_CERTIFICATE_AUTHORITY"

	SecretS3BucketID        = "COSI_S3_BUCKET_ID"
	SecretS3Endpoint        = "COSI_S3_ENDPOINT"
	SecretS3Region          = "COSI_S3_REGION"
	SecretS3AddressingStyle = "COSI_S3_ADDRESSING_STYLE"
	SecretS3AccessKeyID     = "COSI_S3_ACCESS_KEY_ID"
	SecretS3AccessSecretKey = "COSI_S3_ACCESS_SECRET_KEY"

	SecretAzureStorageAccount = "COSI_AZURE_STORAGE_ACCOUNT"
	SecretAzureAccessToken    = "COSI_AZURE_ACCESS_TOKEN"
	SecretAzureExpiry         = "COSI_AZURE_EXPIRY_TIMESTAMP"

	SecretGCSProjectID      = "COSI_GCS_PROJECT_ID"
	SecretGCSBucketName     = "COSI_GCS_BUCKET_NAME"
	SecretGCSAccessID       = "COSI_GCS_ACCESS_ID"
	SecretGCSAccessSecret   = "COSI_GCS_ACCESS_SECRET"
	SecretGCSPrivateKeyName = "COSI_GCS_PRIVATE_KEY_NAME"
	SecretGCSServiceAccount = "COSI_GCS_SERVICE_ACCOUNT"
)
