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
// +kubebuilder:printcolumn:name="Handle",type=string,JSONPath=`.status.handle`,priority=1
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.capacity`
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

	// Handle is the volume's handle, once it is created.
	// +optional
	Handle string `json:"handle,omitempty"`

	// Capacity is the volume's capacity, once it is created.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// ObservedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Provisioned and Deleted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
