package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClaimPhase is the phase of an ObjectBucketClaim.
//
// +kubebuilder:validation:Enum=Pending;Bound;Released;Failed
type ClaimPhase string

// The phases of a claim.
const (
	// ClaimPending means that there is no bucket yet, or no access to it.
	ClaimPending ClaimPhase = "Pending"

	// ClaimBound means that the ConfigMap and the Secret of the claim tell how to use the bucket.
	ClaimBound ClaimPhase = "Bound"

	// ClaimReleased means that the claim is being deleted.
	ClaimReleased ClaimPhase = "Released"

	// ClaimFailed means that the claim can never be served.
	ClaimFailed ClaimPhase = "Failed"
)

// ObjectBucketClaim asks for a bucket and access to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName={obc,obcs},path=objectbucketclaims,singular=objectbucketclaim
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Storage-Class",type=string,JSONPath=`.spec.storageClassName`,description="StorageClass"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Phase"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ObjectBucketClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for a bucket.
	Spec ObjectBucketClaimSpec `json:"spec,omitempty"`

	// status is the state of the claim.
	// +optional
	Status ObjectBucketClaimStatus `json:"status,omitempty"`
}

// ObjectBucketClaimList is a list of ObjectBucketClaims.
//
// +kubebuilder:object:root=true
type ObjectBucketClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectBucketClaim `json:"items"`
}

// ObjectBucketClaimSpec is the request for a bucket.
type ObjectBucketClaimSpec struct {
	// storageClassName is the StorageClass, whose provisioner serves the claim.
	StorageClassName string `json:"storageClassName"`

	// bucketName is the name of the bucket, which may be taken in the store.
	// +optional
	BucketName string `json:"bucketName,omitempty"`

	// generateBucketName is a prefix of the name of the bucket.
	// +optional
	GenerateBucketName string `json:"generateBucketName,omitempty"`

	// additionalConfig has settings that the provisioner knows.
	// +optional
	AdditionalConfig map[string]string `json:"additionalConfig,omitempty"`

	// objectBucketName is the name of the ObjectBucket. The provisioner sets it.
	// +optional
	ObjectBucketName string `json:"objectBucketName,omitempty"`
}

// ObjectBucketClaimStatus is the state of a claim.
type ObjectBucketClaimStatus struct {
	// phase is the phase of the claim.
	// +optional
	Phase ClaimPhase `json:"phase,omitempty"`
}

// BucketPhase is the phase of an ObjectBucket.
//
// +kubebuilder:validation:Enum=Bound;Released;Failed
type BucketPhase string

// The phases of an ObjectBucket.
const (
	BucketBound    BucketPhase = "Bound"
	BucketReleased BucketPhase = "Released"
)

// ObjectBucket is a bucket that a claim has.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName={ob,obs},path=objectbuckets,singular=objectbucket
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Storage-Class",type=string,JSONPath=`.spec.storageClassName`,description="StorageClass"
// +kubebuilder:printcolumn:name="Claim-Namespace",type=string,JSONPath=`.spec.claimRef.namespace`,description="ClaimNamespace"
// +kubebuilder:printcolumn:name="Claim-Name",type=string,JSONPath=`.spec.claimRef.name`,description="ClaimName"
// +kubebuilder:printcolumn:name="Reclaim-Policy",type=string,JSONPath=`.spec.reclaimPolicy`,description="ReclaimPolicy"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Phase"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ObjectBucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec tells how to use the bucket.
	Spec ObjectBucketSpec `json:"spec,omitempty"`

	// status is the state of the bucket.
	// +optional
	Status ObjectBucketStatus `json:"status,omitempty"`
}

// ObjectBucketList is a list of ObjectBuckets.
//
// +kubebuilder:object:root=true
type ObjectBucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ObjectBucket `json:"items"`
}

// ObjectBucketSpec tells how to use a bucket.
type ObjectBucketSpec struct {
	// storageClassName is the StorageClass of the claim.
	StorageClassName string `json:"storageClassName"`

	// reclaimPolicy says what happens to the bucket when the claim is deleted.
	// +optional
	// +kubebuilder:validation:Enum=Delete;Retain;Recycle
	ReclaimPolicy *corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy,omitempty"`

	// claimRef is the claim, with its UID.
	// +optional
	ClaimRef *corev1.ObjectReference `json:"claimRef,omitempty"`

	// endpoint tells where the bucket is.
	// +optional
	Endpoint *Endpoint `json:"endpoint,omitempty"`

	// additionalState belongs to the provisioner.
	// +optional
	AdditionalState map[string]string `json:"additionalState,omitempty"`
}

// Endpoint tells where a bucket is.
type Endpoint struct {
	// bucketHost is the host of the store, without scheme.
	// +optional
	BucketHost string `json:"bucketHost,omitempty"`

	// bucketPort is the port of the store.
	// +optional
	BucketPort int `json:"bucketPort,omitempty"`

	// bucketName is the name of the bucket in the store.
	// +optional
	BucketName string `json:"bucketName,omitempty"`

	// region is the region of the bucket.
	// +optional
	Region string `json:"region,omitempty"`

	// subRegion is the part of the region.
	// +optional
	SubRegion string `json:"subRegion,omitempty"`

	// additionalConfig are further settings, which the ConfigMap of the claim has as well.
	// +optional
	AdditionalConfig map[string]string `json:"additionalConfig,omitempty"`
}

// ObjectBucketStatus is the state of a bucket.
type ObjectBucketStatus struct {
	// phase is the phase of the bucket.
	// +optional
	Phase BucketPhase `json:"phase,omitempty"`
}
