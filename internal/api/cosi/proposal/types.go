package proposal

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BucketPhase is the phase of a Bucket.
//
// +kubebuilder:validation:Enum=Pending;Bound
type BucketPhase string

// The phases of a Bucket.
const (
	// BucketPending means that there is no bucket yet, or no access to it.
	BucketPending BucketPhase = "Pending"

	// BucketBound means that the Secret of the Bucket tells how to use the bucket.
	BucketBound BucketPhase = "Bound"
)

// ContentPhase is the phase of a BucketContent.
//
// +kubebuilder:validation:Enum=Ready;Bound;Released;Failed;Retrying
type ContentPhase string

// The phases of a BucketContent that PaV writes.
const (
	// ContentBound means that a Bucket has the bucket.
	ContentBound ContentPhase = "Bound"

	// ContentReleased means that the Bucket is deleted.
	ContentReleased ContentPhase = "Released"
)

// ReleasePolicy says what happens to a bucket when its Bucket is deleted.
//
// +kubebuilder:validation:Enum=Delete;Retain
type ReleasePolicy string

// The release policies.
const (
	ReleaseDelete ReleasePolicy = "Delete"
	ReleaseRetain ReleasePolicy = "Retain"
)

// AccessMode is what the account of a Bucket may do.
//
// +kubebuilder:validation:Enum=ro;wo;rw
type AccessMode string

// The modes.
const (
	AccessReadOnly  AccessMode = "ro"
	AccessWriteOnly AccessMode = "wo"
	AccessReadWrite AccessMode = "rw"
)

// Bucket asks for a bucket, and for access to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,path=buckets,singular=bucket
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.bucketClassName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for a bucket.
	Spec BucketSpec `json:"spec"`

	// status is the state of the Bucket.
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

// BucketSpec is the request for a bucket.
type BucketSpec struct {
	// bucketPrefix is put before the name that is made for the bucket.
	// +optional
	BucketPrefix string `json:"bucketPrefix,omitempty"`

	// bucketClassName is the BucketClass, whose provisioner serves the Bucket.
	BucketClassName string `json:"bucketClassName"`

	// secretName is the name of the Secret that tells how to use the bucket.
	SecretName string `json:"secretName"`
}

// BucketStatus is the state of a Bucket.
type BucketStatus struct {
	// bucketContentName is the name of the BucketContent.
	// +optional
	BucketContentName string `json:"bucketContentName,omitempty"`

	// phase is the phase of the Bucket.
	// +optional
	Phase BucketPhase `json:"phase,omitempty"`
}

// BucketContent is a bucket that a Bucket has.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=bucketcontents,singular=bucketcontent
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.bucketClassName`
// +kubebuilder:printcolumn:name="Bucket-Namespace",type=string,JSONPath=`.spec.bucketRef.namespace`
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.spec.bucketRef.name`
// +kubebuilder:printcolumn:name="Release-Policy",type=string,JSONPath=`.spec.releasePolicy`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketContent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is known of the bucket.
	// +optional
	Spec BucketContentSpec `json:"spec,omitzero"`

	// status is the state of the bucket.
	// +optional
	Status BucketContentStatus `json:"status,omitzero"`
}

// BucketContentList is a list of BucketContents.
//
// +kubebuilder:object:root=true
type BucketContentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BucketContent `json:"items"`
}

// BucketContentSpec is what is known of a bucket.
type BucketContentSpec struct {
	// provisioner is the one that serves the bucket.
	// +optional
	Provisioner string `json:"provisioner,omitempty"`

	// releasePolicy says what happens to the bucket when the Bucket is deleted.
	// +optional
	ReleasePolicy ReleasePolicy `json:"releasePolicy,omitempty"`

	// accessModes are what the account of the Bucket may do.
	// +optional
	AccessModes []AccessMode `json:"accessModes,omitempty"`

	// supportedProtocols are those that the class lists.
	// +optional
	SupportedProtocols []string `json:"supportedProtocols,omitempty"`

	// bucketClassName is the BucketClass that the bucket was made of.
	// +optional
	BucketClassName string `json:"bucketClassName,omitempty"`

	// bucketRef is the Bucket that has the bucket.
	// +optional
	BucketRef *BucketReference `json:"bucketRef,omitempty"`

	// secretRef is the Secret with the credentials: that of the class or, if the class has none, that of the Bucket.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`

	// bucketIdentifier identifies the bucket in its store.
	// +optional
	BucketIdentifier string `json:"bucketIdentifier,omitempty"`

	// parameters are those of the class.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}

// BucketReference names a Bucket.
type BucketReference struct {
	// name of the Bucket.
	Name string `json:"name"`

	// namespace of the Bucket.
	Namespace string `json:"namespace"`

	// uuid is the UID of the Bucket.
	// +optional
	UUID types.UID `json:"uuid,omitempty"`

	// resourceVersion is the one that the Bucket had when the BucketContent was written.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// name of the Secret.
	Name string `json:"name"`

	// namespace of the Secret.
	Namespace string `json:"namespace"`
}

// BucketContentStatus is the state of a bucket.
type BucketContentStatus struct {
	// message says why the BucketContent has its phase.
	// +optional
	Message string `json:"message,omitempty"`

	// phase is the phase of the BucketContent.
	// +optional
	Phase ContentPhase `json:"phase,omitempty"`
}

// BucketClass is a class of buckets that are to be made, or names a bucket that exists already.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=bucketclasses,singular=bucketclass
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.provisioner`
// +kubebuilder:printcolumn:name="Release-Policy",type=string,JSONPath=`.releasePolicy`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BucketClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// provisioner is the one that serves the Buckets of the class.
	// +optional
	Provisioner string `json:"provisioner,omitempty"`

	// supportedProtocols are those of the store, such as s3, azure or gcs.
	// +optional
	SupportedProtocols []string `json:"supportedProtocols,omitempty"`

	// accessMode is what the accounts of Buckets may do.
	// +optional
	AccessMode AccessMode `json:"accessMode,omitempty"`

	// releasePolicy says what happens to a bucket when its Bucket is deleted.
	// +optional
	ReleasePolicy ReleasePolicy `json:"releasePolicy,omitempty"`

	// bucketIdentifier names a bucket that exists already, to which all Buckets of the class get access.
	// +optional
	BucketIdentifier string `json:"bucketIdentifier,omitempty"`

	// secretRef is a Secret of an administrator with the credentials that all Buckets of the class get.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`

	// parameters are for the provisioner.
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
