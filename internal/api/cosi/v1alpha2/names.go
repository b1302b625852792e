package v1alpha2

import "k8s.io/apimachinery/pkg/types"

// Finalizer holds each object of COSI, and each Secret of a BucketAccess, as long as something has to be done about it. PaV decides nothing
// by it: who removes one loses nothing.
const Finalizer = "objectstorage.k8s.io/protection"

// BucketOf returns the name of the Bucket that is made for a claim.
func BucketOf(claim types.UID) string { return "bc-" + string(claim) }

// The keys of the Secret of an access to a bucket. Applications can read them.
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
