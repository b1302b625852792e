package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BucketAPI is the API by which a bucket, or access to it, was requested.
//
// +kubebuilder:validation:Enum=ObjectBucketClaim;COSIv1alpha1;COSIv1alpha2;COSIProposal;Volume
type BucketAPI string

// The APIs.
const (
	// BucketAPIClaim is objectbucket.io/v1alpha1.
	BucketAPIClaim BucketAPI = "ObjectBucketClaim"

	// BucketAPICOSI1 and BucketAPICOSI2 are the two versions of objectstorage.k8s.io.
	BucketAPICOSI1 BucketAPI = "COSIv1alpha1"
	BucketAPICOSI2 BucketAPI = "COSIv1alpha2"

	// BucketAPICOSI0 is cosi.io/v1alpha1, COSI's first proposal.
	BucketAPICOSI0 BucketAPI = "COSIProposal"

	// BucketAPIVolume means that a volume uses the bucket.
	BucketAPIVolume BucketAPI = "Volume"
)

// BucketReclaimPolicy says what happens to a bucket when its claim is deleted.
//
// +kubebuilder:validation:Enum=Delete;Retain
type BucketReclaimPolicy string

// The reclaim policies.
const (
	BucketDelete BucketReclaimPolicy = "Delete"
	BucketRetain BucketReclaimPolicy = "Retain"
)

// BucketPhase is the phase of a bucket.
//
// +kubebuilder:validation:Enum=Pending;Ready;Deleting;Retained
type BucketPhase string

// The phases of a PavBucket.
const (
	// BucketPending means that the bucket is not created yet.
	BucketPending BucketPhase = "Pending"

	// BucketReady means that access to the bucket can be granted.
	BucketReady BucketPhase = "Ready"

	// BucketDeleting means that the bucket is being deleted.
	BucketDeleting BucketPhase = "Deleting"

	// BucketRetained means that the bucket belongs to the administrator. The PavBucket is only a record.
	BucketRetained BucketPhase = "Retained"
)

// BucketStep is the current step of a bucket.
//
// +kubebuilder:validation:Enum=Validating;Creating;Reverting;Updating;Deleting;Deleted
type BucketStep string

// The steps. An empty step means that no attempt has begun, or that the bucket is ready.
const (
	// BucketValidating means that the validation pod runs, or is about to.
	BucketValidating BucketStep = "Validating"

	// BucketCreating means that the creation pod runs, or is about to.
	BucketCreating BucketStep = "Creating"

	// BucketReverting means that creation has failed, or is not needed any more, and that the deletion pod reverts it.
	BucketReverting BucketStep = "Reverting"

	// BucketUpdating means that the update pod changes the bucket as its claim now asks for.
	BucketUpdating BucketStep = "Updating"

	// BucketDeletingStep means that the deletion pod deletes a bucket that was created.
	BucketDeletingStep BucketStep = "Deleting"

	// BucketDeletedStep means that the bucket is deleted, or never existed, and only objects are left.
	BucketDeletedStep BucketStep = "Deleted"
)

// Condition types of a PavBucket.
const (
	// BucketCreated is true once access to the bucket can be granted; if it is false, its message says why.
	BucketCreated = "Created"

	// BucketUpdated is false, with the reason, while the bucket is not yet as its claim asks for.
	BucketUpdated = "Updated"

	// BucketDeleted is false, with the reason, while the deletion is in progress or cannot continue.
	BucketDeleted = "Deleted"
)

// PavBucket is the record of a bucket. It is named b-<uid of the claim>, and is written before any effect.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pavbuc,singular=pavbucket,path=pavbuckets
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.spec.provisioner`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.claimRef.namespace`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.claimRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.step`
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.status.bucketId`
// +kubebuilder:printcolumn:name="API",type=string,JSONPath=`.spec.api`,priority=1
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`,priority=1
// +kubebuilder:printcolumn:name="Deletions",type=integer,JSONPath=`.status.deletionAttempt`,priority=1
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failure.reason`,priority=1,description="Why the last attempt to create the bucket failed."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PavBucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for the bucket.
	Spec PavBucketSpec `json:"spec"`

	// status is the state of the bucket.
	// +optional
	Status PavBucketStatus `json:"status,omitempty"`
}

// PavBucketList is a list of PavBuckets.
//
// +kubebuilder:object:root=true
type PavBucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PavBucket `json:"items"`
}

// BucketQuota is what a claim asks for, or what its class grants.
type BucketQuota struct {
	// size is the size of all objects.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// objects is the number of objects.
	// +optional
	Objects *int64 `json:"objects,omitempty"`
}

// PavBucketSpec is the request for a bucket.
//
// +kubebuilder:validation:XValidation:rule="has(self.existingBucketId) == has(oldSelf.existingBucketId) && (!has(self.existingBucketId) || self.existingBucketId == oldSelf.existingBucketId)",fieldPath=".existingBucketId",message="is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.store) == has(oldSelf.store) && (!has(self.store) || self.store == oldSelf.store)",fieldPath=".store",message="is immutable"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.released) || !oldSelf.released || has(self.released) && self.released",fieldPath=".released",message="cannot be taken back"
type PavBucketSpec struct {
	// provisioner is the name of the PavProvisioner.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Provisioner string `json:"provisioner"`

	// api is the API by which the bucket was requested.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	API BucketAPI `json:"api"`

	// claimRef is the claim of the bucket.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	ClaimRef ClaimReference `json:"claimRef"`

	// bucketName is the name that the bucket is to have.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	// +kubebuilder:validation:MaxLength=2048
	BucketName string `json:"bucketName"`

	// nameRequested says that the claim chose the name. Such a bucket may be anybody's.
	// +optional
	NameRequested bool `json:"nameRequested,omitempty"`

	// existingBucketId identifies a bucket that exists already, which PaV neither creates nor deletes.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ExistingBucketID string `json:"existingBucketId,omitempty"`

	// store is the value of bucketValidation.store.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Store string `json:"store,omitempty"`

	// protocols are those that the claim asks for; empty for all that the provisioner supports.
	// +optional
	// +listType=set
	Protocols []BucketProtocol `json:"protocols,omitempty"`

	// parameters are those of the class.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// additionalConfig is what the claim asks for. It may change.
	// +optional
	AdditionalConfig map[string]string `json:"additionalConfig,omitempty"`

	// quota is what the claim asks for, or what its class grants. It may change.
	// +optional
	Quota BucketQuota `json:"quota,omitzero"`

	// reclaimPolicy says what happens to the bucket when it is released.
	ReclaimPolicy BucketReclaimPolicy `json:"reclaimPolicy"`

	// released says that the claim is gone, or is being deleted, and that nobody has access to the bucket any more.
	// +optional
	Released bool `json:"released,omitempty"`

	// claim is a copy of the claim, which templates see.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Claim *apiextensionsv1.JSON `json:"claim,omitempty"`

	// class is a copy of the class, which templates see.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Class *apiextensionsv1.JSON `json:"class,omitempty"`
}

// PavBucketStatus is the state of a bucket.
type PavBucketStatus struct {
	// phase is the phase of the bucket.
	// +optional
	Phase BucketPhase `json:"phase,omitempty"`

	// step is the current step.
	// +optional
	Step BucketStep `json:"step,omitempty"`

	// recordUID is the UID that the PavBucket had when its first attempt began. If it has another one, it was restored from a backup.
	// +optional
	RecordUID types.UID `json:"recordUID,omitempty"`

	// attempt is the number of the current or last attempt to create or update the bucket, from 1. A successful attempt resets it.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// deletionAttempt is the number of the current or last attempt to delete the bucket, or to revert its creation, from 1. A
	// successful attempt resets it.
	// +optional
	DeletionAttempt int32 `json:"deletionAttempt,omitempty"`

	// provisionerGeneration is the generation of the PavProvisioner that the last pod was created from.
	// +optional
	ProvisionerGeneration int64 `json:"provisionerGeneration,omitempty"`

	// pod is the pod of the current step. It is recorded before it is created.
	// +optional
	Pod *PodReference `json:"pod,omitempty"`

	// pods is the number of pods that were recorded so far. The name of each pod depends on its number.
	// +optional
	Pods int32 `json:"pods,omitempty"`

	// plannedBucketId is the value of bucketCreation.bucketId, which overrides what the pod writes. It is recorded with the pod.
	// +optional
	PlannedBucketID string `json:"plannedBucketId,omitempty"`

	// bucketId identifies the bucket in its store. While a creation is reverted, it is what the pod wrote, if it wrote something.
	// +optional
	BucketID string `json:"bucketId,omitempty"`

	// created says that the bucket is this claim's: its name has the UID of the claim, or the creation pod created /pav/created. Only
	// such a bucket is ever deleted.
	// +optional
	Created bool `json:"created,omitempty"`

	// mayExist says that an attempt to create the bucket ran a pod, failed, and was not reverted: there may be a bucket of the name, and
	// it may be this claim's.
	// +optional
	MayExist bool `json:"mayExist,omitempty"`

	// mayExistId identifies that bucket.
	// +optional
	MayExistID string `json:"mayExistId,omitempty"`

	// info is what clients need to know besides credentials.
	// +optional
	Info map[string]string `json:"info,omitempty"`

	// extraInfo are further keys of an ObjectBucketClaim's ConfigMap.
	// +optional
	ExtraInfo map[string]string `json:"extraInfo,omitempty"`

	// protocols are those that the bucket supports.
	// +optional
	// +listType=set
	Protocols []BucketProtocol `json:"protocols,omitempty"`

	// configuring is the hash of the additionalConfig and the quota with which the current attempt began, and configured that with which
	// the bucket was created, or to which it was updated.
	// +optional
	Configuring string `json:"configuring,omitempty"`
	// +optional
	Configured string `json:"configured,omitempty"`

	// retainedTime is when the bucket came to belong to the administrator; absent unless the phase is Retained.
	// +optional
	RetainedTime *metav1.Time `json:"retainedTime,omitempty"`

	// failure is why the last attempt to create or update the bucket failed. It is removed when an attempt succeeds.
	// +optional
	Failure *WorkflowFailure `json:"failure,omitempty"`

	// deletionFailure is why the last attempt to delete the bucket, or to revert its creation, failed. It is removed when an attempt
	// succeeds.
	// +optional
	DeletionFailure *WorkflowFailure `json:"deletionFailure,omitempty"`

	// observedGeneration is the generation of the spec that the status is based on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Created, Updated and Deleted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// agentVersion is the version of the agent that wrote this status last.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`

	// lastHandledRetry is the value of the annotation pav.albertofaria.github.io/retry that the last attempt handled, so that each
	// retry counts once.
	// +optional
	LastHandledRetry string `json:"lastHandledRetry,omitempty"`
}

// Failures returns the failures of the last attempts to create and delete the bucket that are recorded.
func (s *PavBucketStatus) Failures() []*WorkflowFailure {
	return recorded(s.Failure, s.DeletionFailure)
}
