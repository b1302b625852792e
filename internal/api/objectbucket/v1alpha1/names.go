package v1alpha1

// Finalizer holds an ObjectBucketClaim, and its ObjectBucket, Secret and ConfigMap. The protocol demands it. PaV decides nothing by it:
// who removes it loses nothing.
const Finalizer = "objectbucket.io/finalizer"

// ProvisionerLabel on the objects of a claim is the name of the provisioner, with '-' instead of '/'.
const ProvisionerLabel = "bucket-provisioner"

// BucketNameParameter of a StorageClass is the name of an existing bucket, to which its claims get access.
const BucketNameParameter = "bucketName"

// The keys of the ConfigMap of a claim.
const (
	BucketName      = "BUCKET_NAME"
	BucketHost      = "BUCKET_HOST"
	BucketPort      = "BUCKET_PORT"
	BucketRegion    = "BUCKET_REGION"
	BucketSubRegion = "BUCKET_SUBREGION"
)

// The keys of the Secret of a claim: those of the library, and those of the protocol's description.
const (
	AWSAccessKeyID     = "AWS_ACCESS_KEY_ID"
	AWSSecretAccessKey = "AWS_SECRET_ACCESS_KEY"
	AccessKeyID        = "ACCESS_KEY_ID"
	SecretAccessKey    = "SECRET_ACCESS_KEY"
)

// BucketOf returns the name of the ObjectBucket of a claim. Two claims can have the same, as a-b/c and a/b-c have: the claimRef of the
// ObjectBucket says whose it is.
func BucketOf(namespace, name string) string { return "obc-" + namespace + "-" + name }
