package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VolumePhase is the phase of a dynamically provisioned volume.
//
// +kubebuilder:validation:Enum=Pending;Ready;Deleting;Retained
type VolumePhase string

// The phases of a PavVolume.
const (
	// VolumePending means that the volume is not provisioned yet: its PersistentVolume is not known to exist. Handle
	// and capacity are recorded in this phase, before the PersistentVolume is written.
	VolumePending VolumePhase = "Pending"

	// VolumeReady means that the volume was created and its PersistentVolume was written.
	VolumeReady VolumePhase = "Ready"

	// VolumeDeleting means that the volume's storage is being deleted, or waits until the volume is unstaged.
	VolumeDeleting VolumePhase = "Deleting"

	// VolumeRetained means that the volume was released with the reclaim policy Retain: its storage belongs to the
	// administrator, and the PavVolume is only a record.
	VolumeRetained VolumePhase = "Retained"
)

// VolumeStep is the current step of a volume in the phases Pending and Deleting, and of one that grows or is modified.
//
// +kubebuilder:validation:Enum=Validating;Creating;Granting;Reverting;Expanding;Modifying;Deleting;Deleted
type VolumeStep string

// The steps. An empty step means that no attempt has begun.
const (
	// StepValidating means that the validation pod runs, or is about to.
	StepValidating VolumeStep = "Validating"

	// StepCreating means that the creation pod runs, or is about to.
	StepCreating VolumeStep = "Creating"

	// StepGranting means that the volume is a bucket, which is being created, or to which access is being granted.
	StepGranting VolumeStep = "Granting"

	// StepReverting means that creation has failed, or the volume is not needed any more, and that the deletion pod
	// reverts the creation.
	StepReverting VolumeStep = "Reverting"

	// StepExpanding means that the expansion pod of a volume runs, or is about to. The phase is Ready, or the volume is
	// deleted after the end of the pod.
	StepExpanding VolumeStep = "Expanding"

	// StepModifying means the same of the modification pod of a volume.
	StepModifying VolumeStep = "Modifying"

	// StepDeleting means that the deletion pod deletes the storage of a volume that was created.
	StepDeleting VolumeStep = "Deleting"

	// StepDeleted means that the storage is deleted, and only objects are left.
	StepDeleted VolumeStep = "Deleted"
)

// MaxClaimCopy is the greatest size, in bytes, of a copy of a claim in a PavVolume or PavStage: tenants who write
// claims must not be able to fill the API server or the caches of PaV's agents.
const MaxClaimCopy = 32 << 10

// VolumeProvisioned is the condition type of a PavVolume that is true once its volume exists; if it is false, its
// message says why.
const VolumeProvisioned = "Provisioned"

// VolumeDeleted is the condition type of a PavVolume that is false, with the reason, while its deletion is in
// progress or cannot continue.
const VolumeDeleted = "Deleted"

// VolumeExpanded is the condition type of a PavVolume that is false, with the reason, while its claim requests more than the
// volume has. A volume that need not grow has no such condition.
const VolumeExpanded = "Expanded"

// VolumeModified is the condition type of a PavVolume that is false, with the reason, while the volume does not have the attributes
// of the VolumeAttributesClass that its claim names. A volume that has them, or need not, has no such condition.
const VolumeModified = "Modified"

// PavVolume is the record of a dynamically provisioned volume. It has the name of the PersistentVolume, pvc-<uid of
// the claim>, and is written before any effect.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pavvol,singular=pavvolume,path=pavvolumes
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.spec.provisioner`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.claimRef.namespace`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.claimRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.step`
// +kubebuilder:printcolumn:name="Handle",type=string,JSONPath=`.status.handle`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`,priority=1
// +kubebuilder:printcolumn:name="Deletions",type=integer,JSONPath=`.status.deletionAttempt`,priority=1
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failure.reason`,priority=1,description="Why the last attempt to provision the volume failed."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PavVolume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for the volume.
	Spec PavVolumeSpec `json:"spec"`

	// status is the state of the volume.
	// +optional
	Status PavVolumeStatus `json:"status,omitempty"`
}

// PavVolumeList is a list of PavVolumes.
//
// +kubebuilder:object:root=true
type PavVolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PavVolume `json:"items"`
}

// ClaimReference identifies a claim: a claim of the same name with another UID is another claim.
type ClaimReference struct {
	// namespace of the claim.
	Namespace string `json:"namespace"`

	// name of the claim.
	Name string `json:"name"`

	// uid of the claim.
	UID types.UID `json:"uid"`
}

// Copies of objects in PavVolumes and PavStages are atomic: the API server then records who wrote a copy, and not who wrote
// each of its fields, which takes as much memory as the copy.

// PavVolumeSpec is the request for a volume.
//
// +kubebuilder:validation:XValidation:rule="(has(self.static) && self.static) == (has(oldSelf.static) && oldSelf.static)",fieldPath=".static",message="is immutable"
// +kubebuilder:validation:XValidation:rule="self.claimRef == oldSelf.claimRef || has(self.static) && self.static",fieldPath=".claimRef",message="is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source)",fieldPath=".source",message="is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.bucketRef) == has(oldSelf.bucketRef)",fieldPath=".bucketRef",message="is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.volumeAttributesClass) == has(oldSelf.volumeAttributesClass)",fieldPath=".volumeAttributesClass",message="is immutable"
type PavVolumeSpec struct {
	// provisioner is the name of the PavProvisioner.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Provisioner string `json:"provisioner"`

	// static is true if an administrator wrote the PersistentVolume. The PavVolume then records only how the volume grows, is
	// modified and is read: its storage is never deleted, and the PavVolume is deleted when no claim has the volume any more,
	// unless a pod that failed may have made the volume larger, or changed its attributes: that is then kept for the next claim.
	// +optional
	Static bool `json:"static,omitempty"`

	// claimRef is the claim that the volume is provisioned for or, if it is static, is bound to. It is immutable, except that a
	// static volume may get another claim.
	ClaimRef ClaimReference `json:"claimRef"`

	// storageClass is the claim's StorageClass as the API server returned it when provisioning began; empty if the volume is
	// static.
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	StorageClass apiextensionsv1.JSON `json:"storageClass"`

	// volumeAttributesClass is the claim's VolumeAttributesClass as the API server returned it when provisioning began; absent if
	// the claim named none.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	// +mapType=atomic
	VolumeAttributesClass *apiextensionsv1.JSON `json:"volumeAttributesClass,omitempty"`

	// source is what the volume is created from, as it was when provisioning began; absent if the volume is created empty.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Source *DataSource `json:"source,omitempty"`

	// bucketRef is the bucket that the volume is; absent for all other volumes.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	BucketRef *VolumeBucketReference `json:"bucketRef,omitempty"`

	// claim is a copy of the claim, which is kept up to date until the claim is deleted; empty if the volume is static.
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Claim apiextensionsv1.JSON `json:"claim"`

	// reclaimPolicy says what happens to the storage when the claim is deleted. It is kept equal to that of the
	// PersistentVolume.
	// +kubebuilder:validation:Enum=Delete;Retain
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy"`
}

// PavVolumeStatus is the state of a volume.
type PavVolumeStatus struct {
	// phase is the phase of the volume.
	// +optional
	Phase VolumePhase `json:"phase,omitempty"`

	// step is the current step, in the phases Pending and Deleting, and while an expansion or modification pod runs.
	// +optional
	Step VolumeStep `json:"step,omitempty"`

	// recordUID is the UID that the PavVolume had when the current attempt to provision the volume began, or when it
	// became ready. If it has another one, it was restored from a backup.
	// +optional
	RecordUID types.UID `json:"recordUID,omitempty"`

	// attempt is the number of the current or last attempt to provision the volume, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// attemptGeneration is the generation of the spec when that attempt began. If it is another one now, the claim or the reclaim
	// policy has changed.
	// +optional
	AttemptGeneration int64 `json:"attemptGeneration,omitempty"`

	// deletionAttempt is the number of the current or last attempt to delete the storage, or to revert its creation,
	// from 1. A successful attempt resets it.
	// +optional
	DeletionAttempt int32 `json:"deletionAttempt,omitempty"`

	// deletionBegun is true once a deletion pod was created to delete the storage, or to revert its creation: the
	// storage may be damaged. It is reset together with deletionAttempt.
	// +optional
	DeletionBegun bool `json:"deletionBegun,omitempty"`

	// definition is the part of the PavProvisioner with which the current attempt to provision the volume began. The
	// attempt keeps it even if the PavProvisioner changes.
	// +optional
	Definition *VolumeDefinition `json:"definition,omitempty"`

	// provisionedClaim is the claim as it was when the current attempt to provision the volume began. The attempt
	// validates it, and the volume is created from it. If the claim changes before the creation pod is created, the
	// attempt fails and the next one begins with the changed claim. It is the variable provisionedPvc of templates.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	ProvisionedClaim *apiextensionsv1.JSON `json:"provisionedClaim,omitempty"`

	// provisionerGeneration is the generation of the PavProvisioner that the last pod was created from: for
	// validation and creation that of the recorded definition, for deletion the current one. The record of a modification has its
	// own.
	// +optional
	ProvisionerGeneration int64 `json:"provisionerGeneration,omitempty"`

	// selectedNode is the node that the scheduler had selected for the claim's first consumer when the current
	// attempt began.
	// +optional
	SelectedNode string `json:"selectedNode,omitempty"`

	// pod is the pod of the current step. It is recorded before it is created.
	// +optional
	Pod *PodReference `json:"pod,omitempty"`

	// sourceCapacity is the capacity that the source volume had when the current attempt to provision the volume began.
	// +optional
	SourceCapacity *resource.Quantity `json:"sourceCapacity,omitempty"`

	// dependsOnSource is what volumeCreation.dependsOnSource said when that attempt began: the storage of the source is not deleted
	// while the volume exists.
	// +optional
	DependsOnSource bool `json:"dependsOnSource,omitempty"`

	// syncRequestTime is when the nodes that have the source volume staged were asked to write to the storage what they have in
	// memory, for the current attempt.
	// +optional
	SyncRequestTime *metav1.MicroTime `json:"syncRequestTime,omitempty"`

	// creationPod is the creation pod, if it created /pav/ready and its containers may still run. The volume can be
	// claimed meanwhile, but no other pod of it runs.
	// +optional
	CreationPod *PodReference `json:"creationPod,omitempty"`

	// pods is the number of pods that were recorded so far. The name of each pod depends on its number.
	// +optional
	Pods int32 `json:"pods,omitempty"`

	// plan has the handle and capacity in the definition, which override those that the creation pod writes. It is
	// recorded with the creation pod.
	// +optional
	Plan *VolumePlan `json:"plan,omitempty"`

	// handle is the handle of the volume, once it is created. While a creation is reverted, it is the handle of the
	// storage that is reverted.
	// +optional
	Handle string `json:"handle,omitempty"`

	// bucket is what staging needs to know of the bucket that the volume is. It is there as long as the volume has access to the
	// bucket: nodes do not begin to stage the volume without it.
	// +optional
	Bucket *VolumeBucket `json:"bucket,omitempty"`

	// bucketAccount is the number of the account whose credentials the Secret of the bucket has, or had a moment ago.
	// +optional
	BucketAccount *int32 `json:"bucketAccount,omitempty"`

	// formerHandle is the handle of storage that a deletion pod of the volume deleted. A creation pod of another
	// volume that ran at that time may have found the storage, and may still write its handle. Until that is known,
	// no other volume can have the handle.
	// +optional
	FormerHandle string `json:"formerHandle,omitempty"`

	// capacity is the volume's capacity, once it is created.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// attemptedCapacity is the largest capacity that an expansion pod may have reached although it failed. What is made from the volume
	// has at least that. Removed when the volume has it.
	// +optional
	AttemptedCapacity *resource.Quantity `json:"attemptedCapacity,omitempty"`

	// expansion is the expansion of the volume that is in progress, or has failed. It is recorded before any effect, and
	// removed when the volume has the capacity, or the claim does not request it any more.
	// +optional
	Expansion *VolumeExpansionRecord `json:"expansion,omitempty"`

	// nodesAskedTime is when nodes were last asked again to make the capacity available, after one had said that this is
	// infeasible.
	// +optional
	NodesAskedTime *metav1.Time `json:"nodesAskedTime,omitempty"`

	// attributes are those that the volume has, since they were first modified. Before that, it has those of
	// spec.volumeAttributesClass.
	// +optional
	Attributes *VolumeAttributes `json:"attributes,omitempty"`

	// modification is the modification of the volume that is in progress, or has failed. It is recorded before any effect, and
	// removed when the volume has the attributes, or the claim does not name the class any more.
	// +optional
	Modification *VolumeModificationRecord `json:"modification,omitempty"`

	// readers are the objects for which pods read the storage, or are about to. The volume is not expanded, modified or deleted
	// meanwhile. Each is recorded before its pod is, while no pod changes the volume, and removed when it has read the storage.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Readers []Reader `json:"readers,omitempty"`

	// accessibleTopology are the labels of the nodes from which the volume can be used, any of them; empty for all
	// nodes.
	// +optional
	// +listType=atomic
	AccessibleTopology []TopologyLabels `json:"accessibleTopology,omitempty"`

	// conflict is the storage that the creation pod named in /pav/handle although another object uses it. While that
	// object exists, nothing is created, and nothing is reverted, as that would delete the other object's data. It stays
	// until the volume has a handle, as the creation pod may have made something under that name.
	// +optional
	Conflict *StorageConflict `json:"conflict,omitempty"`

	// failure is why the last attempt to provision the volume failed. It is removed when an attempt succeeds.
	// +optional
	Failure *WorkflowFailure `json:"failure,omitempty"`

	// deletionFailure is why the last attempt to delete the storage, or to revert its creation, failed. It is removed
	// when an attempt succeeds.
	// +optional
	DeletionFailure *WorkflowFailure `json:"deletionFailure,omitempty"`

	// observedGeneration is the generation of the spec that the status is based on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Provisioned, Expanded, Modified and Deleted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// agentVersion is the version of the agent that wrote this status last.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`

	// lastHandledRetry is the value of the annotation pav.albertofaria.github.io/retry that the last attempt handled,
	// so
	// that each retry counts once.
	// +optional
	LastHandledRetry string `json:"lastHandledRetry,omitempty"`
}

// StorageConflict is storage that a creation pod named although another object uses it.
type StorageConflict struct {
	// handle is the handle that the creation pod wrote to /pav/handle.
	Handle string `json:"handle"`

	// kind is the kind of the object that uses the storage: PavVolume, PersistentVolume or PavStage.
	Kind string `json:"kind"`

	// name is the name of that object.
	Name string `json:"name"`
}
