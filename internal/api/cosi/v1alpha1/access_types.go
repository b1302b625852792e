package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BucketAccessClass is a class of accesses to buckets.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=bucketaccessclasses,singular=bucketaccessclass
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/1979-object-storage-support"
// +kubebuilder:printcolumn:name="Driver",type=string,JSONPath=`.driverName`
// +kubebuilder:printcolumn:name="Authentication",type=string,JSONPath=`.authenticationType`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketAccessClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// driverName is the driver that serves the accesses of the class.
	DriverName string `json:"driverName"`

	// authenticationType is how clients prove who they are: Key or IAM.
	AuthenticationType AuthenticationType `json:"authenticationType"`

	// parameters are for the driver.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}

// BucketAccessClassList is a list of BucketAccessClasses.
//
// +kubebuilder:object:root=true
type BucketAccessClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketAccessClass `json:"items"`
}

// BucketAccess asks for access to the bucket of a claim.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=bucketaccesses,singular=bucketaccess
// +kubebuilder:subresource:status
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=https://github.com/kubernetes/enhancements/tree/master/keps/sig-storage/1979-object-storage-support"
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.bucketClaimName`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.bucketAccessClassName`
// +kubebuilder:printcolumn:name="Granted",type=boolean,JSONPath=`.status.accessGranted`
// +kubebuilder:printcolumn:name="Account",type=string,JSONPath=`.status.accountID`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketAccess struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for access.
	// +optional
	Spec BucketAccessSpec `json:"spec,omitempty"`

	// status is the state of the access.
	// +optional
	Status BucketAccessStatus `json:"status"`
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
type BucketAccessSpec struct {
	// bucketClaimName is the claim, in the namespace of the access.
	BucketClaimName string `json:"bucketClaimName"`

	// protocol is the protocol that clients use: S3, Azure or GCP. Default: that of the bucket.
	// +optional
	Protocol Protocol `json:"protocol,omitempty"`

	// bucketAccessClassName is the BucketAccessClass.
	BucketAccessClassName string `json:"bucketAccessClassName"`

	// credentialsSecretName is the Secret that tells how to use the bucket, in the namespace of the access.
	CredentialsSecretName string `json:"credentialsSecretName"`

	// serviceAccountName is the ServiceAccount of the clients, where they authenticate by IAM.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// BucketAccessStatus is the state of an access.
type BucketAccessStatus struct {
	// accountID identifies the account of the clients in the store.
	// +optional
	AccountID string `json:"accountID,omitempty"`

	// accessGranted says that the Secret tells how to use the bucket.
	// +optional
	AccessGranted bool `json:"accessGranted"`
}
