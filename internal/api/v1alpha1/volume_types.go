package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VolumePhase is where in its life a dynamically provisioned volume is.
//
// +kubebuilder:validation:Enum=Pending;Ready;Deleting;Retained
type VolumePhase string

// The phases of a PavVolume.
const (
	// VolumePending means that the volume is in the making: its PersistentVolume is not known to
	// exist. Handle and capacity are recorded in this phase, before the PersistentVolume is written.
	VolumePending VolumePhase = "Pending"

	// VolumeReady means that the volume was created and its PersistentVolume written.
	VolumeReady VolumePhase = "Ready"

	// VolumeDeleting means that the volume's storage is being deleted, or waits for its last stage.
	VolumeDeleting VolumePhase = "Deleting"

	// VolumeRetained means that the volume was released under the reclaim policy Retain: its
	// storage is the administrator's, and the PavVolume is but a record.
	VolumeRetained VolumePhase = "Retained"
)

// VolumeStep is what is being done about a volume in the phases Pending and Deleting.
//
// +kubebuilder:validation:Enum=Validating;Creating;Reverting;Deleting;Deleted
type VolumeStep string

// The steps. An empty step means that an attempt is yet to begin.
const (
	// StepValidating means that the validation pod runs, or is about to.
	StepValidating VolumeStep = "Validating"

	// StepCreating means that the creation pod runs, or is about to.
	StepCreating VolumeStep = "Creating"

	// StepReverting means that creation has failed, or nobody wants the volume any more, and that
	// the deletion pod undoes what the creation pod may have done.
	StepReverting VolumeStep = "Reverting"

	// StepDeleting means that the deletion pod deletes the storage of a volume that was created.
	StepDeleting VolumeStep = "Deleting"

	// StepDeleted means that the storage is deleted: all that is left are objects.
	StepDeleted VolumeStep = "Deleted"
)

// MaxClaimCopy is the greatest size, in bytes, of a copy of a claim in a PavVolume or PavStage: whoever may
// write claims must not be able to fill the API server or the caches of PaV's agents.
const MaxClaimCopy = 32 << 10

// VolumeProvisioned is the condition type of a PavVolume that is true once its volume exists; where
// it is false, its message is the reason.
const VolumeProvisioned = "Provisioned"

// VolumeDeleted is the condition type of a PavVolume that is false, with the reason, while its deletion cannot go on.
const VolumeDeleted = "Deleted"

// PavVolume is the ledger of a dynamically provisioned volume. It has the name of the
// PersistentVolume, pvc-<uid of the claim>, and is written before any effect.
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
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PavVolume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the volume was asked to be.
	Spec PavVolumeSpec `json:"spec"`

	// Status is what became of it.
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

// ClaimReference names a claim for good: a claim of the same name with another UID is another claim.
type ClaimReference struct {
	// Namespace of the claim.
	Namespace string `json:"namespace"`

	// Name of the claim.
	Name string `json:"name"`

	// UID of the claim.
	UID types.UID `json:"uid"`
}

// PavVolumeSpec is what a volume was asked to be.
type PavVolumeSpec struct {
	// Provisioner is the name of the PavProvisioner.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Provisioner string `json:"provisioner"`

	// ClaimRef is the claim that provisioned the volume.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	ClaimRef ClaimReference `json:"claimRef"`

	// StorageClass is the claim's StorageClass as the API server returned it when provisioning was triggered.
	StorageClass apiextensionsv1.JSON `json:"storageClass"`

	// Claim is the claim as the API server last returned it: it follows the claim until that is deleted.
	Claim apiextensionsv1.JSON `json:"claim"`

	// ReclaimPolicy says what becomes of the storage when the claim is gone. It follows the PersistentVolume's.
	// +kubebuilder:validation:Enum=Delete;Retain
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy"`
}

// PavVolumeStatus is what became of a volume.
type PavVolumeStatus struct {
	// Phase is where in its life the volume is.
	// +optional
	Phase VolumePhase `json:"phase,omitempty"`

	// Step is what is being done, in the phases Pending and Deleting.
	// +optional
	Step VolumeStep `json:"step,omitempty"`

	// Attempt says the how many-th attempt to provision the volume this is, or the last one was, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// DeletionAttempt says the how many-th attempt to delete the storage, or to revert its
	// creation, this is, or the last one was, from 1. A successful one sets it back to none.
	// +optional
	DeletionAttempt int32 `json:"deletionAttempt,omitempty"`

	// Definition is the part of the PavProvisioner that the present attempt to provision the volume
	// began with, and goes on with whatever becomes of the PavProvisioner.
	// +optional
	Definition *VolumeDefinition `json:"definition,omitempty"`

	// provisionedClaim is the claim as it was when the present attempt to provision the volume began: what
	// the attempt validates, and what the volume is made from. Where the claim is changed before the
	// creation pod is created, the attempt fails and the next one begins with the changed claim. It is
	// the variable provisionedPvc of templates.
	// +optional
	ProvisionedClaim *apiextensionsv1.JSON `json:"provisionedClaim,omitempty"`

	// ProvisionerGeneration is the generation of the PavProvisioner that the last pod was created from:
	// for validation and creation that of the definition, for deletion the current one.
	// +optional
	ProvisionerGeneration int64 `json:"provisionerGeneration,omitempty"`

	// SelectedNode is the node that the scheduler had chosen for the claim's first consumer when
	// the present attempt began.
	// +optional
	SelectedNode string `json:"selectedNode,omitempty"`

	// Pod is the pod of the present step, recorded before it is created.
	// +optional
	Pod *PodReference `json:"pod,omitempty"`

	// Pods is the number of pods that were recorded so far; each is named by its number.
	// +optional
	Pods int32 `json:"pods,omitempty"`

	// Plan is what the volume will be according to the definition, which comes before what the
	// creation pod says. It is recorded with the creation pod.
	// +optional
	Plan *VolumePlan `json:"plan,omitempty"`

	// Handle is the volume's handle, once it is created; while a creation is undone, that of what is undone.
	// +optional
	Handle string `json:"handle,omitempty"`

	// formerHandle is the handle of storage that a deletion pod of the volume deleted. A creation pod of
	// another volume that ran at that time may have found the storage, and may name it yet; until that is
	// known, nobody else can have the handle.
	// +optional
	FormerHandle string `json:"formerHandle,omitempty"`

	// Capacity is the volume's capacity, once it is created.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// AccessibleTopology are the labels of the nodes from which the volume can be used, any of them; empty for all nodes.
	// +optional
	// +listType=atomic
	AccessibleTopology []TopologyLabels `json:"accessibleTopology,omitempty"`

	// conflict is the storage that the creation pod named in /pav/handle although another object has
	// it. While that object exists, nothing is created, and nothing is ever undone, as that would
	// delete the other object's data.
	// +optional
	Conflict *StorageConflict `json:"conflict,omitempty"`

	// Failure is why the last attempt to provision the volume failed, until one succeeds.
	// +optional
	Failure *WorkflowFailure `json:"failure,omitempty"`

	// DeletionFailure is why the last attempt to delete the storage, or to revert its creation,
	// failed, until one succeeds.
	// +optional
	DeletionFailure *WorkflowFailure `json:"deletionFailure,omitempty"`

	// ObservedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Provisioned and Deleted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// agentVersion is the version of the agent that wrote this status last.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`

	// lastHandledRetry is the value of the annotation pav.albertofaria.github.io/retry that the last attempt handled, so
	// that each retry counts once.
	// +optional
	LastHandledRetry string `json:"lastHandledRetry,omitempty"`
}

// StorageConflict is storage that a creation pod named although another object has it.
type StorageConflict struct {
	// handle is what the creation pod wrote to /pav/handle.
	Handle string `json:"handle"`

	// kind is the kind of the object that has the storage: PavVolume, PersistentVolume or PavStage.
	Kind string `json:"kind"`

	// name is the name of that object.
	Name string `json:"name"`
}

// VolumeDefinition is what of a PavProvisioner a volume is made by.
type VolumeDefinition struct {
	// UID and Generation are those of the PavProvisioner.
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`

	// VolumeValidation is its spec.volumeValidation.
	// +optional
	VolumeValidation *VolumeValidation `json:"volumeValidation,omitempty"`

	// VolumeCreation is its spec.volumeCreation.
	// +optional
	VolumeCreation *VolumeCreation `json:"volumeCreation,omitempty"`
}

// VolumePlan is what a volume will be according to its definition.
type VolumePlan struct {
	// Handle is the value of volumeCreation.handle; empty if the creation pod may choose.
	// +optional
	Handle string `json:"handle,omitempty"`

	// Capacity is the value of volumeCreation.capacity; none if the creation pod must tell.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// AccessibleTopology is the value of volumeCreation.accessibleTopology.
	// +optional
	// +listType=atomic
	AccessibleTopology []TopologyLabels `json:"accessibleTopology,omitempty"`
}

// TopologyLabels are labels that a node must have, all of them.
type TopologyLabels map[string]string
