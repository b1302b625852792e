package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeletionPolicy says what happens to a bucket when its claim is deleted.
type DeletionPolicy string

// The policies. Upstream's definitions have the default "retain".
const (
	DeletionPolicyRetain DeletionPolicy = "Retain"
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

// Protocol is a protocol by which clients access a bucket.
type Protocol string

// The protocols.
const (
	ProtocolS3    Protocol = "S3"
	ProtocolAzure Protocol = "Azure"
	ProtocolGCP   Protocol = "GCP"
)

// AuthenticationType is how clients of a bucket prove who they are.
type AuthenticationType string

// The types of authentication.
const (
	// AuthenticationTypeKey means that a Secret has credentials.
	AuthenticationTypeKey AuthenticationType = "Key"

	// AuthenticationTypeIAM means that the store trusts the ServiceAccount of the clients.
	AuthenticationTypeIAM AuthenticationType = "IAM"
)

// BucketClass is a class of buckets.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=bucketclasses,singular=bucketclass
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/1979-object-storage-support"
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.driverName`
// +kubebuilder:printcolumn:name="Deletion-Policy",type=string,JSONPath=`.deletionPolicy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// driverName is the driver that serves the claims of the class.
	DriverName string `json:"driverName"`

	// deletionPolicy says what happens to a bucket when its claim is deleted: Retain or Delete.
	// +kubebuilder:default:=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`

	// parameters are for the driver.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}

// BucketClassList is a list of BucketClasses.
//
// +kubebuilder:object:root=true
type BucketClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketClass `json:"items"`
}

// BucketClaim asks for a bucket.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=bucketclaims,singular=bucketclaim
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/1979-object-storage-support"
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.bucketClassName`
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.status.bucketName`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.bucketReady`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for a bucket.
	// +optional
	Spec BucketClaimSpec `json:"spec,omitempty"`

	// status is the state of the claim.
	// +optional
	Status BucketClaimStatus `json:"status,omitempty"`
}

// BucketClaimList is a list of BucketClaims.
//
// +kubebuilder:object:root=true
type BucketClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketClaim `json:"items"`
}

// BucketClaimSpec is the request for a bucket.
type BucketClaimSpec struct {
	// bucketClassName is the BucketClass of a bucket that is to be made.
	// +optional
	BucketClassName string `json:"bucketClassName,omitempty"`

	// protocols are those that the bucket must support: S3, Azure or GCP.
	Protocols []Protocol `json:"protocols"`

	// existingBucketName is the name of a Bucket that an administrator wrote for a bucket that exists already.
	// +optional
	ExistingBucketName string `json:"existingBucketName,omitempty"`
}

// BucketClaimStatus is the state of a claim.
type BucketClaimStatus struct {
	// bucketReady says that access to the bucket can be granted.
	BucketReady bool `json:"bucketReady"`

	// bucketName is the name of the Bucket.
	// +optional
	BucketName string `json:"bucketName,omitempty"`
}

// Bucket is a bucket that a claim has, or that an administrator offers to one.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=buckets,singular=bucket
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/1979-object-storage-support"
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.driverName`
// +kubebuilder:printcolumn:name="Claim-Namespace",type=string,JSONPath=`.spec.bucketClaim.namespace`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.bucketClaim.name`
// +kubebuilder:printcolumn:name="Deletion-Policy",type=string,JSONPath=`.spec.deletionPolicy`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.bucketReady`
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.status.bucketID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the bucket.
	// +optional
	Spec BucketSpec `json:"spec,omitempty"`

	// status is the state of the bucket.
	// +optional
	Status BucketStatus `json:"status,omitempty"`
}

// BucketList is a list of Buckets.
//
// +kubebuilder:object:root=true
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bucket `json:"items"`
}

// BucketSpec is a bucket.
type BucketSpec struct {
	// driverName is the driver of the bucket.
	DriverName string `json:"driverName"`

	// bucketClassName is the BucketClass of the claim.
	BucketClassName string `json:"bucketClassName"`

	// bucketClaim is the claim that has the bucket or, of a Bucket that an administrator writes, the only one that may bind it.
	BucketClaim *corev1.ObjectReference `json:"bucketClaim"`

	// protocols are those that the bucket supports.
	Protocols []Protocol `json:"protocols"`

	// parameters are for the driver.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// deletionPolicy says what happens to the bucket when its claim is deleted: Retain or Delete.
	// +optional
	// +kubebuilder:default:=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`

	// existingBucketID identifies a bucket that exists already in its store.
	// +optional
	ExistingBucketID string `json:"existingBucketID,omitempty"`
}

// BucketStatus is the state of a bucket.
type BucketStatus struct {
	// bucketReady says that access to the bucket can be granted.
	// +optional
	BucketReady bool `json:"bucketReady,omitempty"`

	// bucketID identifies the bucket in its store.
	// +optional
	BucketID string `json:"bucketID,omitempty"`
}
