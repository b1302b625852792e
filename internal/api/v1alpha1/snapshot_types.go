package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SnapshotCreation defines how a snapshot of a volume is created. It is evaluated when a VolumeSnapshot of a claim is created.
//
// +kubebuilder:pruning:PreserveUnknownFields
type SnapshotCreation struct {
	// handle is the snapshot's handle, which must be valid as a VolumeSnapshotContent's status.snapshotHandle.
	// Default: what the snapshot creation pod wrote to /pav/snapshotHandle, or else snapshot-<uid of the VolumeSnapshot>.
	// +optional
	Handle *Template `json:"handle,omitempty"`

	// podTemplate is the PodTemplateSpec of the snapshot creation pod, which runs to completion. If it creates /pav/ready, the
	// snapshot is cut: the volume may change from then on, and the snapshot can be used when the pod has completed. It may write
	// the least capacity of a volume that can be made from the snapshot to /pav/snapshotSize; default: the capacity of the volume.
	// Required.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`

	// whileStaged says what happens before the pod runs while nodes have the volume staged. Not a template. Default: Allow.
	// +optional
	WhileStaged SnapshotWhileStaged `json:"whileStaged,omitempty"`

	// dependsOnVolume says that a snapshot cannot exist without its volume: the storage of a volume is not deleted while
	// snapshots of it exist. Not a template. Default: false.
	// +optional
	DependsOnVolume bool `json:"dependsOnVolume,omitempty"`
}

// SnapshotWhileStaged says what happens before a snapshot creation pod runs while nodes have the volume staged.
//
// +kubebuilder:validation:Enum=Allow;Sync;Wait
type SnapshotWhileStaged string

// What may happen before a snapshot creation pod runs.
const (
	// SnapshotAllow means that the pod runs at once: the storage makes snapshots that are consistent by themselves.
	SnapshotAllow SnapshotWhileStaged = "Allow"

	// SnapshotSync means that all nodes that have the volume staged first write to the storage what the kernel has in memory of it.
	// What a FUSE daemon has in its own memory is the daemon's.
	SnapshotSync SnapshotWhileStaged = "Sync"

	// SnapshotWait means that the pod runs while no node has the volume staged, and that no node stages it until the snapshot is
	// cut.
	SnapshotWait SnapshotWhileStaged = "Wait"
)

// SnapshotDeletion defines how a snapshot is deleted, and how a creation that failed is reverted.
//
// +kubebuilder:pruning:PreserveUnknownFields
type SnapshotDeletion struct {
	// podTemplate is the PodTemplateSpec of the snapshot deletion pod, which runs to completion. It must succeed if there is no
	// such snapshot. Default: no pod; there is nothing to delete.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// SnapshotPhase is the phase of a snapshot.
//
// +kubebuilder:validation:Enum=Pending;Cut;Ready;Deleting;Retained
type SnapshotPhase string

// The phases of a PavSnapshot.
const (
	// SnapshotPending means that the snapshot is not cut yet.
	SnapshotPending SnapshotPhase = "Pending"

	// SnapshotCut means that the snapshot has the data that its volume had, and that its creation pod still works on it.
	SnapshotCut SnapshotPhase = "Cut"

	// SnapshotReady means that volumes can be made from the snapshot.
	SnapshotReady SnapshotPhase = "Ready"

	// SnapshotDeleting means that the snapshot's storage is being deleted.
	SnapshotDeleting SnapshotPhase = "Deleting"

	// SnapshotRetained means that the snapshot's storage belongs to the administrator, as its deletion policy was Retain when its
	// VolumeSnapshotContent was deleted. The PavSnapshot is only a record.
	SnapshotRetained SnapshotPhase = "Retained"
)

// SnapshotStep is the current step of a snapshot.
//
// +kubebuilder:validation:Enum=Creating;Reverting;Deleting;Deleted
type SnapshotStep string

// The steps. An empty step means that no attempt has begun, or that the snapshot is ready.
const (
	// SnapshotCreating means that the snapshot creation pod runs, or is about to.
	SnapshotCreating SnapshotStep = "Creating"

	// SnapshotReverting means that creation has failed, or is not needed any more, and that the deletion pod reverts it.
	SnapshotReverting SnapshotStep = "Reverting"

	// SnapshotDeletingStep means that the deletion pod deletes a snapshot that was created.
	SnapshotDeletingStep SnapshotStep = "Deleting"

	// SnapshotDeletedStep means that the storage is deleted, or never existed, and only objects are left.
	SnapshotDeletedStep SnapshotStep = "Deleted"
)

// SnapshotCreated is the condition type of a PavSnapshot that is true once the snapshot can be used; if it is false, its message
// says why.
const SnapshotCreated = "Created"

// SnapshotDeleted is the condition type of a PavSnapshot that is false, with the reason, while its deletion is in progress or
// cannot continue.
const SnapshotDeleted = "Deleted"

// PavSnapshot is the record of a snapshot of a volume. It is named snapshot-<uid of the VolumeSnapshot> or, if an administrator
// wrote the VolumeSnapshotContent, snapshotcontent-<uid of that>, and is written before any effect.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pavsnap,singular=pavsnapshot,path=pavsnapshots
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.spec.provisioner`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.snapshotRef.namespace`
// +kubebuilder:printcolumn:name="Snapshot",type=string,JSONPath=`.spec.snapshotRef.name`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volumeName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.step`
// +kubebuilder:printcolumn:name="Handle",type=string,JSONPath=`.status.handle`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attempt`,priority=1
// +kubebuilder:printcolumn:name="Deletions",type=integer,JSONPath=`.status.deletionAttempt`,priority=1
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.failure.reason`,priority=1,description="Why the last attempt to create the snapshot failed."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PavSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the request for the snapshot.
	Spec PavSnapshotSpec `json:"spec"`

	// status is the state of the snapshot.
	// +optional
	Status PavSnapshotStatus `json:"status,omitempty"`
}

// PavSnapshotList is a list of PavSnapshots.
//
// +kubebuilder:object:root=true
type PavSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PavSnapshot `json:"items"`
}

// SnapshotContentReference identifies a VolumeSnapshotContent.
type SnapshotContentReference struct {
	// name of the VolumeSnapshotContent.
	Name string `json:"name"`

	// uid of the VolumeSnapshotContent.
	UID types.UID `json:"uid"`
}

// SnapshotReference identifies a VolumeSnapshot.
type SnapshotReference struct {
	// namespace of the VolumeSnapshot.
	Namespace string `json:"namespace"`

	// name of the VolumeSnapshot.
	Name string `json:"name"`

	// uid of the VolumeSnapshot; empty if none is bound yet to a VolumeSnapshotContent that an administrator wrote.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// SnapshotDeletionPolicy says what happens to the storage when the VolumeSnapshotContent is deleted.
//
// +kubebuilder:validation:Enum=Delete;Retain
type SnapshotDeletionPolicy string

// The deletion policies, which are those of a VolumeSnapshotContent.
const (
	SnapshotPolicyDelete SnapshotDeletionPolicy = "Delete"
	SnapshotPolicyRetain SnapshotDeletionPolicy = "Retain"
)

// PavSnapshotSpec is the request for a snapshot.
//
// +kubebuilder:validation:XValidation:rule="has(self.volumeHandle) == has(oldSelf.volumeHandle) && (!has(self.volumeHandle) || self.volumeHandle == oldSelf.volumeHandle)",fieldPath=".volumeHandle",message="is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.claimUID) == has(oldSelf.claimUID) && (!has(self.claimUID) || self.claimUID == oldSelf.claimUID)",fieldPath=".claimUID",message="is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.snapshotHandle) == has(oldSelf.snapshotHandle) && (!has(self.snapshotHandle) || self.snapshotHandle == oldSelf.snapshotHandle)",fieldPath=".snapshotHandle",message="is immutable"
type PavSnapshotSpec struct {
	// provisioner is the name of the PavProvisioner.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	Provisioner string `json:"provisioner"`

	// contentRef is the VolumeSnapshotContent of the snapshot.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable"
	ContentRef SnapshotContentReference `json:"contentRef"`

	// snapshotRef is the VolumeSnapshot that the VolumeSnapshotContent is bound to, or is to be.
	SnapshotRef SnapshotReference `json:"snapshotRef"`

	// volumeName is the name of the PersistentVolume of the volume; empty if an administrator wrote the VolumeSnapshotContent.
	// +optional
	VolumeName string `json:"volumeName,omitempty"`

	// volumeHandle is the handle of the volume; empty if an administrator wrote the VolumeSnapshotContent.
	// +optional
	VolumeHandle string `json:"volumeHandle,omitempty"`

	// claimUID is the UID of the claim that the PersistentVolume was bound to when the snapshot was requested: a PersistentVolume
	// that is given to another claim is not snapshotted. It is empty if an administrator wrote the VolumeSnapshotContent, if the
	// snapshot existed already and its volume was gone, and in records of earlier versions of PaV.
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`

	// snapshotHandle is the handle of a snapshot that exists already, for which an administrator wrote the
	// VolumeSnapshotContent.
	// +optional
	SnapshotHandle string `json:"snapshotHandle,omitempty"`

	// deletionPolicy says what happens to the storage when the VolumeSnapshotContent is deleted. It is kept equal to that of the
	// VolumeSnapshotContent.
	DeletionPolicy SnapshotDeletionPolicy `json:"deletionPolicy"`

	// objects are copies of the objects that the snapshot is made from, as the API server returned them when the snapshot was
	// requested. Templates see them.
	Objects SnapshotObjects `json:"objects,omitzero"`
}

// SnapshotObjects are copies of the objects that a snapshot is made from.
type SnapshotObjects struct {
	// snapshot is the VolumeSnapshot.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Snapshot *apiextensionsv1.JSON `json:"snapshot,omitempty"`

	// snapshotContent is the VolumeSnapshotContent.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	SnapshotContent *apiextensionsv1.JSON `json:"snapshotContent,omitempty"`

	// snapshotClass is the VolumeSnapshotClass.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	SnapshotClass *apiextensionsv1.JSON `json:"snapshotClass,omitempty"`

	// persistentVolume is the PersistentVolume of the volume.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	PersistentVolume *apiextensionsv1.JSON `json:"persistentVolume,omitempty"`

	// claim is the claim that was bound to the PersistentVolume.
	// +optional
	// +kubebuilder:validation:Type=object
	// +mapType=atomic
	Claim *apiextensionsv1.JSON `json:"claim,omitempty"`
}

// PavSnapshotStatus is the state of a snapshot.
type PavSnapshotStatus struct {
	// phase is the phase of the snapshot.
	// +optional
	Phase SnapshotPhase `json:"phase,omitempty"`

	// step is the current step.
	// +optional
	Step SnapshotStep `json:"step,omitempty"`

	// recordUID is the UID that the PavSnapshot had when its first attempt began. If it has another one, it was restored from a
	// backup.
	// +optional
	RecordUID types.UID `json:"recordUID,omitempty"`

	// attempt is the number of the current or last attempt to create the snapshot, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// deletionAttempt is the number of the current or last attempt to delete the storage, or to revert its creation, from 1. A
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

	// syncRequestTime is when the nodes that have the volume staged were asked to write to the storage what they have in memory, for
	// the current attempt.
	// +optional
	SyncRequestTime *metav1.MicroTime `json:"syncRequestTime,omitempty"`

	// plannedHandle is the value of snapshotCreation.handle, which overrides what the pod writes. It is recorded with the pod.
	// +optional
	PlannedHandle string `json:"plannedHandle,omitempty"`

	// handle is the handle of the snapshot, once it is cut. While a creation is reverted, it is the handle that the pod wrote, if
	// it wrote one.
	// +optional
	Handle string `json:"handle,omitempty"`

	// size is the least capacity of a volume that can be made from the snapshot; absent if it is not known.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// readers are the PavVolumes for which pods read the snapshot, or are about to. It is not deleted meanwhile.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	Readers []Reader `json:"readers,omitempty"`

	// creationTime is when the snapshot was cut.
	// +optional
	CreationTime *metav1.MicroTime `json:"creationTime,omitempty"`

	// retainedTime is when the storage came to belong to the administrator; absent unless the phase is Retained.
	// +optional
	RetainedTime *metav1.Time `json:"retainedTime,omitempty"`

	// accessibleTopology are the labels of the nodes from which the storage can be reached, any of them; empty for all nodes.
	// They are those of the volume.
	// +optional
	// +listType=atomic
	AccessibleTopology []TopologyLabels `json:"accessibleTopology,omitempty"`

	// dependsOnVolume is the value of snapshotCreation.dependsOnVolume when the last attempt to create the snapshot began. The storage
	// of the volume is not deleted before that of the snapshot, also if the definition has changed.
	// +optional
	DependsOnVolume bool `json:"dependsOnVolume,omitempty"`

	// failure is why the last attempt to create the snapshot failed. It is removed when an attempt succeeds.
	// +optional
	Failure *WorkflowFailure `json:"failure,omitempty"`

	// deletionFailure is why the last attempt to delete the storage, or to revert its creation, failed. It is removed when an
	// attempt succeeds.
	// +optional
	DeletionFailure *WorkflowFailure `json:"deletionFailure,omitempty"`

	// observedGeneration is the generation of the spec that the status is based on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Created and Deleted.
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

// Failures returns the failures of the last attempts to create and delete the snapshot that are recorded.
func (s *PavSnapshotStatus) Failures() []*WorkflowFailure {
	return recorded(s.Failure, s.DeletionFailure)
}
