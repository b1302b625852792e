package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StagePhase is the phase of a stage.
//
// +kubebuilder:validation:Enum=Validating;Staging;Staged;Unstaging;Failed
type StagePhase string

// The phases of a PavStage. An empty phase means that no work was done yet.
const (
	// StageValidating means that a validation pod may run, for a statically provisioned volume.
	StageValidating StagePhase = "Validating"

	// StageStaging means that a staging pod may run, or its volume is being made available.
	StageStaging StagePhase = "Staging"

	// StageStaged means that the volume is available on the node.
	StageStaged StagePhase = "Staged"

	// StageUnstaging means that staging is being reverted, after a failure or because the last client is gone.
	StageUnstaging StagePhase = "Unstaging"

	// StageFailed means that staging failed and was reverted: nothing of it is left on the node, and the object is
	// only a record of the failure, without a finalizer.
	StageFailed StagePhase = "Failed"
)

// Condition types of a PavStage.
const (
	// StageReady is true while the volume is available on the node.
	StageReady = "Ready"

	// StageDegraded is true while the volume is or was available, but its staging pod has ended, or the volume does
	// not answer.
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

// PavStage is the record of a volume on a node. The agent of that node writes it before the staging pod. It is the
// owner of the staging and unstaging pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pavstage,singular=pavstage,path=pavstages
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.spec.provisioner`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volumeName`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`,priority=1
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.stagingFailure.reason`,priority=1,description="Why staging failed."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PavStage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the volume and the node.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Spec PavStageSpec `json:"spec"`

	// status is the state of the stage.
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

// PavStageSpec is the volume and the node of a stage. It never changes.
type PavStageSpec struct {
	// provisioner is the name of the PavProvisioner.
	Provisioner string `json:"provisioner"`

	// volumeName is the name of the PersistentVolume.
	VolumeName string `json:"volumeName"`

	// volumeHandle is the volume's handle.
	VolumeHandle string `json:"volumeHandle"`

	// nodeName is the node.
	NodeName string `json:"nodeName"`

	// claimRef is the claim for which the volume was staged.
	ClaimRef ClaimReference `json:"claimRef"`

	// volumeMode is the volume's mode.
	VolumeMode corev1.PersistentVolumeMode `json:"volumeMode"`

	// readOnly says that the volume is staged read-only.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// scope says what the stage is for: all client pods of the node or, with scope Pod, the client pod in Client. A
	// stage with scope Pod and without Client only reserves the volume for the node.
	// +optional
	// +kubebuilder:default=Node
	Scope StagingScope `json:"scope,omitempty"`

	// client is the client pod that the stage is for, with scope Pod.
	// +optional
	Client *StageClient `json:"client,omitempty"`

	// exclusive says that the volume may be staged on only one node at a time: its access modes are only
	// ReadWriteOnce or ReadWriteOncePod.
	// +optional
	Exclusive bool `json:"exclusive,omitempty"`

	// volume is the PersistentVolume as the API server returned it before staging. Unstaging uses it if the object is
	// gone.
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Volume apiextensionsv1.JSON `json:"volume"`

	// claim is the claim as the API server returned it before staging. Unstaging uses it if the object is gone.
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Claim apiextensionsv1.JSON `json:"claim"`

	// provisionedClaim is the claim that a dynamically provisioned volume was created for, as it was then. It is
	// the variable provisionedPvc of templates.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	ProvisionedClaim *apiextensionsv1.JSON `json:"provisionedClaim,omitempty"`

	// bucket is the bucket that the volume is, as the PavVolume had it before staging; absent for all other volumes. It is the
	// variable bucket of templates.
	// +optional
	Bucket *VolumeBucket `json:"bucket,omitempty"`
}

// StageClient is a client pod and the path of its volume.
type StageClient struct {
	// namespace of the pod.
	Namespace string `json:"namespace"`

	// name of the pod.
	Name string `json:"name"`

	// uid of the pod.
	UID types.UID `json:"uid"`

	// target is kubelet's path for the volume in the pod's directory on the node.
	Target string `json:"target"`
}

// StageExpansion is the expansion of a staged volume on its node.
type StageExpansion struct {
	// target is the capacity that the volume is to have on the node.
	Target resource.Quantity `json:"target"`

	// attempt is the number of the current attempt to reach any target, from 1.
	Attempt int32 `json:"attempt"`

	// pod is the last node expansion pod, recorded before it is created.
	// +optional
	Pod *PodReference `json:"pod,omitempty"`

	// began is when the pod was recorded, by the clock of the node: it has written no file in /pav that is older.
	// +optional
	Began *metav1.MicroTime `json:"began,omitempty"`

	// recorded says that the outcome of the pod is recorded: in failure, or in the capacity of the status.
	// +optional
	Recorded bool `json:"recorded,omitempty"`

	// failure is why the last attempt failed. Kubelet decides when the next one begins.
	// +optional
	Failure *WorkflowFailure `json:"failure,omitempty"`
}

// PavStageStatus is the state of a stage.
type PavStageStatus struct {
	// phase is the phase of the stage.
	// +optional
	Phase StagePhase `json:"phase,omitempty"`

	// attempt is the number of the current attempt to stage the volume on the node, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// unstagingAttempt is the number of the current attempt to unstage, from 1.
	// +optional
	UnstagingAttempt int32 `json:"unstagingAttempt,omitempty"`

	// validationPod is the validation pod of a statically provisioned volume, recorded before the pod is created.
	// +optional
	ValidationPod *PodReference `json:"validationPod,omitempty"`

	// validated says that the volume was validated in the current attempt, or needs no validation pod.
	// +optional
	Validated bool `json:"validated,omitempty"`

	// stagingPod is the staging pod, recorded before the pod is created.
	// +optional
	StagingPod *PodReference `json:"stagingPod,omitempty"`

	// unstagingPod is the unstaging pod of the current unstaging attempt, recorded before the pod is created.
	// +optional
	UnstagingPod *PodReference `json:"unstagingPod,omitempty"`

	// bootID is the boot of the node in which the current attempt began. Mounts do not survive a reboot.
	// +optional
	BootID string `json:"bootID,omitempty"`

	// nodeStart is when process 1 of the node started, in clock ticks since the boot of its kernel. It identifies the
	// starts of a node that is a container, which can start many times in one boot.
	// +optional
	NodeStart string `json:"nodeStart,omitempty"`

	// restaging says that the volume is being unstaged and staged again while clients use it, because its mount is
	// dead.
	// +optional
	Restaging bool `json:"restaging,omitempty"`

	// capacity is the capacity that the last expansion on the node has made available; absent if there was none.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// stagedCapacity is the capacity that the staging pod makes available: that of the PersistentVolume when the pod was
	// recorded, if the definition has growsVolumes; else absent.
	// +optional
	StagedCapacity *resource.Quantity `json:"stagedCapacity,omitempty"`

	// bucketAccount is the number of the account of the bucket that the staging pod got credentials of, or an earlier one; absent before
	// the pod is recorded, and for volumes that are no buckets. The accounts from this one on are not revoked while the stage exists.
	// +optional
	BucketAccount *int32 `json:"bucketAccount,omitempty"`

	// expansion is the last expansion of the volume on the node.
	// +optional
	Expansion *StageExpansion `json:"expansion,omitempty"`

	// stagingFailure is why staging failed. If it is set, unstaging ends in the phase Failed.
	// +optional
	StagingFailure *WorkflowFailure `json:"stagingFailure,omitempty"`

	// unstagingFailure is why the last unstaging attempt failed.
	// +optional
	UnstagingFailure *WorkflowFailure `json:"unstagingFailure,omitempty"`

	// conditions are Ready and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// agentVersion is the version of the agent that wrote this status last.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`

	// syncedTime is the value of the annotation pav.albertofaria.github.io/sync that the node agent has handled last: what was written
	// to the volume on this node before that time is in the storage.
	// +optional
	SyncedTime *metav1.MicroTime `json:"syncedTime,omitempty"`

	// syncError says why the node agent could not do that for a later value. It tries again.
	// +optional
	SyncError string `json:"syncError,omitempty"`

	// lastHandledRetry is the value of the annotation pav.albertofaria.github.io/retry that the last attempt handled,
	// so
	// that each retry counts once.
	// +optional
	LastHandledRetry string `json:"lastHandledRetry,omitempty"`
}

// ExpansionPod returns the node expansion pod whose outcome is not recorded yet, or nil.
func (s *PavStageStatus) ExpansionPod() *PodReference {
	if s.Expansion == nil || s.Expansion.Recorded {
		return nil
	}
	return s.Expansion.Pod
}
