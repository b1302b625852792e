package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BucketInfo is what the Secret of a BucketAccess has, as JSON. It is no object of the cluster.
//
// +kubebuilder:object:generate=false
type BucketInfo struct {
	// Metadata has the name.
	Metadata BucketInfoMetadata `json:"metadata"`

	// Spec tells how to use the bucket.
	Spec BucketInfoSpec `json:"spec"`
}

// BucketInfoMetadata is the metadata of a BucketInfo.
//
// +kubebuilder:object:generate=false
type BucketInfoMetadata struct {
	// Name is bc-<uid of the access>.
	Name string `json:"name"`
}

// BucketInfoSpec tells how to use a bucket. The schema of upstream's tests requires all fields; of the secrets, at most one is not null.
//
// +kubebuilder:object:generate=false
type BucketInfoSpec struct {
	BucketName         string             `json:"bucketName"`
	AuthenticationType AuthenticationType `json:"authenticationType"`
	S3                 *SecretS3          `json:"secretS3"`
	Azure              *SecretAzure       `json:"secretAzure"`
	Protocols          []Protocol         `json:"protocols"`
}

// SecretS3 is how to use a bucket by the protocol S3.
//
// +kubebuilder:object:generate=false
type SecretS3 struct {
	Endpoint        string `json:"endpoint"`
	Region          string `json:"region"`
	AccessKeyID     string `json:"accessKeyID"`
	AccessSecretKey string `json:"accessSecretKey"`
}

// SecretAzure is how to use a bucket by the protocol Azure. The time is null for a token that does not expire.
//
// +kubebuilder:object:generate=false
type SecretAzure struct {
	AccessToken     string       `json:"accessToken"`
	ExpiryTimeStamp *metav1.Time `json:"expiryTimeStamp"`
}
