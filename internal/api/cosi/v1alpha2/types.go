package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DeletionPolicy says what happens to a bucket when its claim is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

// The policies.
const (
	// DeletionPolicyRetain keeps the bucket, and the Bucket.
	DeletionPolicyRetain DeletionPolicy = "Retain"

	// DeletionPolicyDelete deletes both.
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

// Protocol is a protocol by which clients access a bucket.
//
// +kubebuilder:validation:Enum=S3;Azure;GCS
type Protocol string

// The protocols.
const (
	ProtocolS3    Protocol = "S3"
	ProtocolAzure Protocol = "Azure"
	ProtocolGCS   Protocol = "GCS"
)

// TimestampedError is the last error of an object.
type TimestampedError struct {
	// time is when the error occurred.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// message says what is wrong.
	// +optional
	Message string `json:"message,omitempty"`
}

// BucketClass is a class of buckets.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=bucketclasses,singular=bucketclass
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, for tests of PaV"
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.driverName`
// +kubebuilder:printcolumn:name="Deletion-Policy",type=string,JSONPath=`.spec.deletionPolicy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the class.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Spec BucketClassSpec `json:"spec"`
}

// BucketClassList is a list of BucketClasses.
//
// +kubebuilder:object:root=true
type BucketClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketClass `json:"items"`
}

// BucketClassSpec is a class of buckets.
type BucketClassSpec struct {
	// driverName is the driver that serves the claims of the class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	DriverName string `json:"driverName"`

	// deletionPolicy says what happens to a bucket when its claim is deleted: Retain or Delete.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`

	// parameters are for the driver.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=512
	Parameters map[string]string `json:"parameters,omitempty"`
}

// BucketClaim asks for a bucket.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=bucketclaims,singular=bucketclaim
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, for tests of PaV"
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.bucketClassName`
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.status.boundBucketName`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.readyToUse`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for a bucket.
	Spec BucketClaimSpec `json:"spec"`

	// status is the state of the claim.
	// +optional
	Status BucketClaimStatus `json:"status,omitzero"`
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
//
// +kubebuilder:validation:XValidation:rule="has(self.bucketClassName) != has(self.existingBucketName)",message="exactly one of bucketClassName and existingBucketName must be set"
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
type BucketClaimSpec struct {
	// bucketClassName is the BucketClass of a bucket that is to be made.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BucketClassName string `json:"bucketClassName,omitempty"`

	// protocols are those that the bucket must support: S3, Azure or GCS. Default: any.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Protocols []Protocol `json:"protocols,omitempty"`

	// existingBucketName is the name of a Bucket that an administrator wrote for a bucket that exists already.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ExistingBucketName string `json:"existingBucketName,omitempty"`
}

// BucketClaimStatus is the state of a claim.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.boundBucketName) || has(self.boundBucketName) && self.boundBucketName == oldSelf.boundBucketName",fieldPath=".boundBucketName",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.protocols) || has(self.protocols)",fieldPath=".protocols",message="cannot be removed"
type BucketClaimStatus struct {
	// boundBucketName is the name of the Bucket.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	BoundBucketName string `json:"boundBucketName,omitempty"`

	// readyToUse says that access to the bucket can be granted.
	ReadyToUse bool `json:"readyToUse"`

	// protocols are those that the bucket supports.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Protocols []Protocol `json:"protocols,omitempty"`

	// error is the last error; absent when the bucket is ready.
	// +optional
	Error *TimestampedError `json:"error,omitempty"`
}

// Bucket is a bucket that a claim has, or that an administrator offers to one.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=buckets,singular=bucket
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, for tests of PaV"
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.driverName`
// +kubebuilder:printcolumn:name="Claim-Namespace",type=string,JSONPath=`.spec.bucketClaimRef.namespace`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.bucketClaimRef.name`
// +kubebuilder:printcolumn:name="Deletion-Policy",type=string,JSONPath=`.spec.deletionPolicy`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.readyToUse`
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.status.bucketID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the bucket.
	Spec BucketSpec `json:"spec"`

	// status is the state of the bucket.
	// +optional
	Status BucketStatus `json:"status,omitzero"`
}

// BucketList is a list of Buckets.
//
// +kubebuilder:object:root=true
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bucket `json:"items"`
}

// BucketSpec is a bucket. Only the policy may change, and the UID of the claim be added.
//
// +kubebuilder:validation:XValidation:rule="self.driverName == oldSelf.driverName",fieldPath=".driverName",message="is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.parameters) == has(oldSelf.parameters) && (!has(self.parameters) || self.parameters == oldSelf.parameters)",fieldPath=".parameters",message="is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.protocols) == has(oldSelf.protocols) && (!has(self.protocols) || self.protocols == oldSelf.protocols)",fieldPath=".protocols",message="is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.existingBucketID) == has(oldSelf.existingBucketID) && (!has(self.existingBucketID) || self.existingBucketID == oldSelf.existingBucketID)",fieldPath=".existingBucketID",message="is immutable"
type BucketSpec struct {
	// driverName is the driver of the bucket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	DriverName string `json:"driverName"`

	// deletionPolicy says what happens to the bucket when its claim is deleted: Retain or Delete. Administrators may change it.
	DeletionPolicy DeletionPolicy `json:"deletionPolicy"`

	// parameters are for the driver.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=512
	Parameters map[string]string `json:"parameters,omitempty"`

	// protocols are those that the bucket must support.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Protocols []Protocol `json:"protocols,omitempty"`

	// bucketClaimRef is the claim that has the bucket or, of a Bucket that an administrator writes, the only one that may bind it.
	BucketClaimRef BucketClaimReference `json:"bucketClaimRef"`

	// existingBucketID identifies a bucket that exists already in its store.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9/._-]+$`
	ExistingBucketID string `json:"existingBucketID,omitempty"`
}

// BucketClaimReference is a claim. Who has a Bucket never changes.
//
// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.__namespace__ == oldSelf.__namespace__",message="name and namespace are immutable"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.uid) || has(self.uid) && self.uid == oldSelf.uid",fieldPath=".uid",message="is immutable once it is set"
type BucketClaimReference struct {
	// name is the name of the claim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace is the namespace of the claim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// uid is the UID of the claim. A Bucket that an administrator writes need not have it.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=36
	// +kubebuilder:validation:MaxLength=36
	UID types.UID `json:"uid,omitempty"`
}

// BucketStatus is the state of a bucket.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.bucketID) || has(self.bucketID) && self.bucketID == oldSelf.bucketID",fieldPath=".bucketID",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.protocols) || has(self.protocols)",fieldPath=".protocols",message="cannot be removed"
type BucketStatus struct {
	// readyToUse says that access to the bucket can be granted.
	ReadyToUse bool `json:"readyToUse"`

	// bucketID identifies the bucket in its store.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9/._-]+$`
	BucketID string `json:"bucketID,omitempty"`

	// protocols are those that the bucket supports.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Protocols []Protocol `json:"protocols,omitempty"`

	// bucketInfo is what clients need to know besides credentials, by the keys that Secrets have.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=128
	BucketInfo map[string]string `json:"bucketInfo,omitempty"`

	// error is the last error; absent when the bucket is ready.
	// +optional
	Error *TimestampedError `json:"error,omitempty"`
}
