package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StagePhase is where in its life a stage is.
//
// +kubebuilder:validation:Enum=Validating;Staging;Staged;Unstaging;Failed
type StagePhase string

// The phases of a PavStage. An empty phase means that nothing has been done yet.
const (
	// StageValidating means that a validation pod may run, for a statically provisioned volume.
	StageValidating StagePhase = "Validating"

	// StageStaging means that a staging pod may run, or its tree may be on its way to the client.
	StageStaging StagePhase = "Staging"

	// StageStaged means that the volume is available on the node.
	StageStaged StagePhase = "Staged"

	// StageUnstaging means that the effects of staging are being reverted, after a failure or
	// because the last client has gone.
	StageUnstaging StagePhase = "Unstaging"

	// StageFailed means that staging failed and was reverted: nothing of it is left on the node,
	// and the object is but a record of the failure, without a finalizer.
	StageFailed StagePhase = "Failed"
)

// Condition types of a PavStage.
const (
	// StageReady is true while the volume is available on the node.
	StageReady = "Ready"

	// StageDegraded is true while the volume is available, or was, but its staging pod has ended, or
	// the volume does not answer.
	StageDegraded = "Degraded"
)

// Reasons of StageDegraded.
const (
	// ReasonStagingPodEnded: the staging pod has failed, but the volume still answers.
	ReasonStagingPodEnded = "StagingPodEnded"

	// ReasonVolumeDead: the volume never answers again.
	ReasonVolumeDead = "VolumeDead"

	// ReasonVolumeSilent: the volume does not answer.
	ReasonVolumeSilent = "VolumeSilent"

	// ReasonVolumeDetached: the volume is not mounted for pods any more.
	ReasonVolumeDetached = "VolumeDetached"
)

// PavStage is the ledger of a volume on a node, written by the agent of that node before the
// staging pod, and the owner of the staging and unstaging pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pavstage,singular=pavstage,path=pavstages
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.spec.provisioner`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volumeName`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PavStage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is which volume is to be available on which node.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Spec PavStageSpec `json:"spec"`

	// Status is how far that is.
	// +optional
	Status PavStageStatus `json:"status,omitempty"`
}

// PavStageList is a list of PavStages.
//
// +kubebuilder:object:root=true
type PavStageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PavStage `json:"items"`
}

// PavStageSpec says which volume is to be available on which node. It never changes.
type PavStageSpec struct {
	// Provisioner is the name of the PavProvisioner.
	Provisioner string `json:"provisioner"`

	// VolumeName is the name of the PersistentVolume.
	VolumeName string `json:"volumeName"`

	// VolumeHandle is the volume's handle.
	VolumeHandle string `json:"volumeHandle"`

	// NodeName is the node.
	NodeName string `json:"nodeName"`

	// ClaimRef is the claim through which the volume was staged.
	ClaimRef ClaimReference `json:"claimRef"`

	// VolumeMode is the volume's mode.
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode"`

	// ReadOnly says that the volume is staged for reading only.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// Scope says what the stage is for: all client pods of the node; or, with scope Pod, the one that
	// Client names, or none, where the stage but claims the volume for the node.
	// +optional
	// +kubebuilder:default=Node
	Scope StagingScope `json:"scope,omitempty"`

	// Client is the client pod that the stage is for, where the scope is Pod.
	// +optional
	Client *StageClient `json:"client,omitempty"`

	// Exclusive says that the volume may be staged on one node at a time: its access modes are only
	// ReadWriteOnce or ReadWriteOncePod.
	// +optional
	Exclusive bool `json:"exclusive,omitempty"`

	// Volume is the PersistentVolume as the API server returned it before staging. Unstaging uses it where the object is gone.
	Volume apiextensionsv1.JSON `json:"volume"`

	// Claim is the claim as the API server returned it before staging. Unstaging uses it where the object is gone.
	Claim apiextensionsv1.JSON `json:"claim"`

	// provisionedClaim is the claim that a dynamically provisioned volume was created for, as it was then. It is
	// the variable provisionedPvc of templates.
	// +optional
	ProvisionedClaim *apiextensionsv1.JSON `json:"provisionedClaim,omitempty"`
}

// StageClient names a client pod and where its volume is to appear.
type StageClient struct {
	// Namespace of the pod.
	Namespace string `json:"namespace"`

	// Name of the pod.
	Name string `json:"name"`

	// UID of the pod.
	UID types.UID `json:"uid"`

	// Target is kubelet's path for the volume in the pod's directory on the node.
	Target string `json:"target"`
}

// PavStageStatus is how far a stage is.
type PavStageStatus struct {
	// Phase is where in its life the stage is.
	// +optional
	Phase StagePhase `json:"phase,omitempty"`

	// Attempt says the how many-th attempt to stage the volume on the node this is, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// UnstagingAttempt numbers the unstaging pods of the stage, from 1.
	// +optional
	UnstagingAttempt int32 `json:"unstagingAttempt,omitempty"`

	// ValidationPod is the validation pod of a statically provisioned volume, recorded before the pod is created.
	// +optional
	ValidationPod *PodReference `json:"validationPod,omitempty"`

	// Validated says that the volume was found valid in the present attempt, or needs no validation pod.
	// +optional
	Validated bool `json:"validated,omitempty"`

	// StagingPod is the staging pod, recorded before the pod is created.
	// +optional
	StagingPod *PodReference `json:"stagingPod,omitempty"`

	// UnstagingPod is the unstaging pod of the present unstaging attempt, recorded before the pod is created.
	// +optional
	UnstagingPod *PodReference `json:"unstagingPod,omitempty"`

	// BootID is the boot of the node in which the present attempt began: mounts do not outlive it.
	// +optional
	BootID string `json:"bootID,omitempty"`

	// nodeStart is when process 1 of the node started, in clock ticks since the boot of its kernel. It tells the
	// starts of a node apart that is a container, and starts many times in one boot.
	// +optional
	NodeStart string `json:"nodeStart,omitempty"`

	// Restaging says that the volume is unstaged and staged again under its clients, because its staging pod has ended.
	// +optional
	Restaging bool `json:"restaging,omitempty"`

	// StagingFailure is why staging failed. Where it is set, unstaging ends in the phase Failed.
	// +optional
	StagingFailure *WorkflowFailure `json:"stagingFailure,omitempty"`

	// UnstagingFailure is why the last unstaging attempt failed.
	// +optional
	UnstagingFailure *WorkflowFailure `json:"unstagingFailure,omitempty"`

	// Conditions has Ready and Degraded.
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
