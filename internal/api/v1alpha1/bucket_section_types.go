package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BucketProtocol is a protocol by which clients access a bucket.
//
// +kubebuilder:validation:Enum=S3;Azure;GCS
type BucketProtocol string

// The protocols.
const (
	ProtocolS3    BucketProtocol = "S3"
	ProtocolAzure BucketProtocol = "Azure"
	ProtocolGCS   BucketProtocol = "GCS"
)

// AuthenticationType is how clients of a bucket prove who they are.
//
// +kubebuilder:validation:Enum=Key;ServiceAccount
type AuthenticationType string

// The types of authentication.
const (
	// AuthenticationKey means that the grant pod leaves credentials, which clients find in a Secret.
	AuthenticationKey AuthenticationType = "Key"

	// AuthenticationServiceAccount means that the store trusts the ServiceAccount of the clients, and that there are no
	// credentials.
	AuthenticationServiceAccount AuthenticationType = "ServiceAccount"
)

// BucketAccessMode is what the account of an access may do with a bucket.
//
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly;WriteOnly
type BucketAccessMode string

// The modes of access.
const (
	AccessReadWrite BucketAccessMode = "ReadWrite"
	AccessReadOnly  BucketAccessMode = "ReadOnly"
	AccessWriteOnly BucketAccessMode = "WriteOnly"
)

// RequestedNames says whether claims may choose the names of their buckets.
//
// +kubebuilder:validation:Enum=Allow;Refuse
type RequestedNames string

// What happens to a claim that chooses the name of its bucket.
const (
	RequestedNamesAllow  RequestedNames = "Allow"
	RequestedNamesRefuse RequestedNames = "Refuse"
)

// UnclaimedBuckets says which claims may bind a COSI Bucket that an administrator wrote without naming a claim.
//
// +kubebuilder:validation:Enum=Refuse;FirstClaim
type UnclaimedBuckets string

// What happens to a Bucket that names no claim.
const (
	// UnclaimedRefuse means that no claim can bind it.
	UnclaimedRefuse UnclaimedBuckets = "Refuse"

	// UnclaimedFirstClaim means that the first claim that names it binds it for good, from whichever namespace.
	UnclaimedFirstClaim UnclaimedBuckets = "FirstClaim"
)

// BucketValidation defines which buckets a provisioner supports. It is evaluated before a bucket is created, or an existing one
// is used.
//
// +kubebuilder:pruning:PreserveUnknownFields
type BucketValidation struct {
	// protocols are the protocols that the buckets support. Not templates. Default: [S3].
	// +optional
	// +listType=set
	Protocols []BucketProtocol `json:"protocols,omitempty"`

	// authenticationTypes are how clients can prove who they are. Not templates. Default: [Key].
	// +optional
	// +listType=set
	AuthenticationTypes []AuthenticationType `json:"authenticationTypes,omitempty"`

	// accessModes are the modes of access that can be granted. Not templates. Default: [ReadWrite, ReadOnly].
	// +optional
	// +listType=set
	AccessModes []BucketAccessMode `json:"accessModes,omitempty"`

	// store names the store within which names of buckets are unique, such as its endpoint. Buckets of other provisioners are not
	// compared: let one provisioner serve a store. A bucket keeps the store with which it was requested: if a change of this field
	// gives a later claim of the same existing bucket another one, its access waits. Default: all buckets of the provisioner are in
	// one store.
	// +optional
	Store *Template `json:"store,omitempty"`

	// additionalConfig are the keys of an ObjectBucketClaim's spec.additionalConfig that claims may set. Not templates. Default:
	// none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	AdditionalConfig []string `json:"additionalConfig,omitempty"`

	// requestedNames says whether claims may choose the names of their buckets. A bucket of a chosen name may be anybody's: it is
	// only deleted if the creation pod created /pav/created. Not a template. Default: Allow.
	// +optional
	RequestedNames RequestedNames `json:"requestedNames,omitempty"`

	// maxSize is the maximum of the size that a claim may ask for: a quantity, or an integer number of bytes. A claim that asks for
	// no size is refused then. Default: none.
	// +optional
	MaxSize *Template `json:"maxSize,omitempty"`

	// maxBucketsPerNamespace is the maximum number of buckets of a namespace's claims. Retained buckets do not count, except for those
	// of which nobody knows whether they exist (status.mayExist of the PavBucket). Default: none.
	// +optional
	MaxBucketsPerNamespace *Template `json:"maxBucketsPerNamespace,omitempty"`

	// maxAccessesPerBucket is the maximum number of accesses to a bucket. Default: none.
	// +optional
	MaxAccessesPerBucket *Template `json:"maxAccessesPerBucket,omitempty"`

	// unclaimedBuckets says which claims may bind a COSI Bucket that an administrator wrote without naming a claim. Not a template.
	// Default: Refuse.
	// +optional
	UnclaimedBuckets UnclaimedBuckets `json:"unclaimedBuckets,omitempty"`

	// podTemplate is the PodTemplateSpec of the pod that validates a request for a bucket, which runs to completion and fails if the
	// request is invalid.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// BucketCreation defines how a bucket is created.
//
// +kubebuilder:pruning:PreserveUnknownFields
type BucketCreation struct {
	// bucketId identifies the bucket in its store. Default: what the creation pod wrote to /pav/bucketId, or else the variable
	// bucketName.
	// +optional
	BucketID *Template `json:"bucketId,omitempty"`

	// info is what clients need to know besides credentials: a mapping of endpoint, region, subRegion, addressingStyle,
	// storageAccount, projectId, host, port and of extra/KEY, a key of an ObjectBucketClaim's ConfigMap, each overridden by
	// what the creation pod wrote to /pav/info.
	// +optional
	Info *Template `json:"info,omitempty"`

	// podTemplate is the PodTemplateSpec of the creation pod, which runs to completion.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// BucketUpdate defines how a bucket changes when an ObjectBucketClaim's spec.additionalConfig does.
//
// +kubebuilder:pruning:PreserveUnknownFields
type BucketUpdate struct {
	// podTemplate is the PodTemplateSpec of the update pod, which runs to completion. Required.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// BucketDeletion defines how a bucket is deleted, and how a creation that failed is reverted.
//
// +kubebuilder:pruning:PreserveUnknownFields
type BucketDeletion struct {
	// podTemplate is the PodTemplateSpec of the deletion pod, which runs to completion. It must succeed if there is no such bucket.
	// Default: no pod; there is nothing to delete.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// BucketAccessGrant defines how access to buckets is granted.
//
// +kubebuilder:pruning:PreserveUnknownFields
type BucketAccessGrant struct {
	// rotateEvery is how often an access gets a new account. Not a template. Default: never.
	// +optional
	RotateEvery *metav1.Duration `json:"rotateEvery,omitempty"`

	// overlap is how long the former account of an access works after a rotation. Not a template. Default: 1h.
	// +optional
	Overlap *metav1.Duration `json:"overlap,omitempty"`

	// fromSecret is the name of a Secret in the namespace pav-credentials whose keys are the credentials of all accesses. No pod
	// runs then. Default: the grant pod leaves credentials in /pav/credentials.
	// +optional
	FromSecret *Template `json:"fromSecret,omitempty"`

	// podTemplate is the PodTemplateSpec of the grant pod, which runs to completion.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// BucketAccessRevoke defines how access to buckets is revoked, and how a grant that failed is reverted. Without it, an account that a grant
// pod has made goes on working until someone deletes it in the store.
//
// +kubebuilder:pruning:PreserveUnknownFields
type BucketAccessRevoke struct {
	// podTemplate is the PodTemplateSpec of the revocation pod, which runs to completion. It must succeed if there is no such account.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}
