package v1alpha2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AuthenticationType is how clients of a bucket prove who they are.
//
// +kubebuilder:validation:Enum=Key;ServiceAccount
type AuthenticationType string

// The types of authentication.
const (
	// AuthenticationTypeKey means that a Secret has credentials.
	AuthenticationTypeKey AuthenticationType = "Key"

	// AuthenticationTypeServiceAccount means that the store trusts the ServiceAccount of the clients.
	AuthenticationTypeServiceAccount AuthenticationType = "ServiceAccount"
)

// AccessMode is what an account may do with a bucket.
//
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly;WriteOnly
type AccessMode string

// The modes.
const (
	AccessModeReadWrite AccessMode = "ReadWrite"
	AccessModeReadOnly  AccessMode = "ReadOnly"
	AccessModeWriteOnly AccessMode = "WriteOnly"
)

// MultiBucketAccess says whether an access may be to several buckets.
//
// +kubebuilder:validation:Enum=SingleBucket;MultipleBuckets
type MultiBucketAccess string

// The values. The default is SingleBucket.
const (
	MultiBucketAccessSingle   MultiBucketAccess = "SingleBucket"
	MultiBucketAccessMultiple MultiBucketAccess = "MultipleBuckets"
)

// BucketAccessClass is a class of accesses to buckets.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=bucketaccessclasses,singular=bucketaccessclass
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, for tests of PaV"
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.spec.driverName`
// +kubebuilder:printcolumn:name="Authentication",type=string,JSONPath=`.spec.authenticationType`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketAccessClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the class.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Spec BucketAccessClassSpec `json:"spec"`
}

// BucketAccessClassList is a list of BucketAccessClasses.
//
// +kubebuilder:object:root=true
type BucketAccessClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketAccessClass `json:"items"`
}

// BucketAccessClassSpec is a class of accesses to buckets.
type BucketAccessClassSpec struct {
	// driverName is the driver that serves the accesses of the class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	DriverName string `json:"driverName"`

	// authenticationType is how clients prove who they are: Key or ServiceAccount.
	AuthenticationType AuthenticationType `json:"authenticationType"`

	// parameters are for the driver.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=512
	Parameters map[string]string `json:"parameters,omitempty"`

	// disallowedBucketAccessModes are the modes that no access of the class may have.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	DisallowedBucketAccessModes []AccessMode `json:"disallowedBucketAccessModes,omitempty"`

	// multiBucketAccess says whether an access may be to several buckets: SingleBucket or MultipleBuckets. Default: SingleBucket.
	// +optional
	MultiBucketAccess MultiBucketAccess `json:"multiBucketAccess,omitempty"`
}

// BucketAccess asks for access to the buckets of claims, with one account.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=bucketaccesses,singular=bucketaccess
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, for tests of PaV"
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.bucketAccessClassName`
// +kubebuilder:printcolumn:name="Ready",type=boolean,JSONPath=`.status.readyToUse`
// +kubebuilder:printcolumn:name="Account",type=string,JSONPath=`.status.accountID`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketAccess struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for access.
	Spec BucketAccessSpec `json:"spec"`

	// status is the state of the access.
	// +optional
	Status BucketAccessStatus `json:"status,omitzero"`
}

// BucketAccessList is a list of BucketAccesses.
//
// +kubebuilder:object:root=true
type BucketAccessList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketAccess `json:"items"`
}

// BucketAccessSpec is the request for access.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
type BucketAccessSpec struct {
	// bucketClaims are the claims, in the namespace of the access.
	// +listType=map
	// +listMapKey=bucketClaimName
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	BucketClaims []BucketClaimAccess `json:"bucketClaims"`

	// bucketAccessClassName is the BucketAccessClass.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BucketAccessClassName string `json:"bucketAccessClassName"`

	// protocol is the protocol that clients use: S3, Azure or GCS.
	Protocol Protocol `json:"protocol"`

	// serviceAccountName is the ServiceAccount of the clients, where the store trusts it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// BucketClaimAccess is a request for access to the bucket of one claim.
type BucketClaimAccess struct {
	// bucketClaimName is the claim.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BucketClaimName string `json:"bucketClaimName"`

	// accessMode is what the account may do with the bucket: ReadWrite, ReadOnly or WriteOnly.
	AccessMode AccessMode `json:"accessMode"`

	// accessSecretName is the Secret that tells how to use the bucket. No other may have that name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	AccessSecretName string `json:"accessSecretName"`
}

// BucketAccessStatus is the state of an access. All but readyToUse and error never changes once it is set.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.accountID) || has(self.accountID) && self.accountID == oldSelf.accountID",fieldPath=".accountID",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.accessedBuckets) || has(self.accessedBuckets) && self.accessedBuckets == oldSelf.accessedBuckets",fieldPath=".accessedBuckets",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.driverName) || has(self.driverName) && self.driverName == oldSelf.driverName",fieldPath=".driverName",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.authenticationType) || has(self.authenticationType) && self.authenticationType == oldSelf.authenticationType",fieldPath=".authenticationType",message="is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.parameters) || has(self.parameters) && self.parameters == oldSelf.parameters",fieldPath=".parameters",message="is immutable once it is set"
type BucketAccessStatus struct {
	// readyToUse says that the Secrets tell how to use the buckets.
	ReadyToUse bool `json:"readyToUse"`

	// accountID identifies the first account of the clients in the store.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9/._-]+$`
	AccountID string `json:"accountID,omitempty"`

	// accessedBuckets are the buckets that the account has access to.
	// +optional
	// +listType=map
	// +listMapKey=bucketName
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	AccessedBuckets []AccessedBucket `json:"accessedBuckets,omitempty"`

	// driverName is the driver that serves the access.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DriverName string `json:"driverName,omitempty"`

	// authenticationType is how clients prove who they are.
	// +optional
	AuthenticationType AuthenticationType `json:"authenticationType,omitempty"`

	// parameters are those of the class.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=512
	Parameters map[string]string `json:"parameters,omitempty"`

	// error is the last error; absent when access is granted.
	// +optional
	Error *TimestampedError `json:"error,omitempty"`
}

// AccessedBucket is a bucket that an account has access to.
type AccessedBucket struct {
	// bucketName is the name of the Bucket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BucketName string `json:"bucketName"`

	// bucketID identifies the bucket in its store.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9/._-]+$`
	BucketID string `json:"bucketID"`

	// bucketClaimName is the claim in the spec that has the bucket.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BucketClaimName string `json:"bucketClaimName"`
}
