package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeExpansionRecord is an expansion that is in progress, or has failed.
type VolumeExpansionRecord struct {
	// target is the capacity that the volume is to have at least. It is what the claim requests, but does not change while it is
	// not known what the last pod has done.
	Target resource.Quantity `json:"target"`

	// capacity is the value of volumeExpansion.capacity; absent if the expansion pod may choose the capacity.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	ChangeAttempt `json:",inline"`

	// offline says that the volume is to grow, or grows, while no node has it staged: no node begins to stage it meanwhile.
	// +optional
	Offline bool `json:"offline,omitempty"`
}

// ChangeAttempt is the current or last attempt to change a volume that exists.
type ChangeAttempt struct {
	// attempt is the number of the current or last attempt, from 1.
	Attempt int32 `json:"attempt"`

	// failure is why the last attempt failed.
	// +optional
	Failure *WorkflowFailure `json:"failure,omitempty"`

	// uncertain says that it is not known what the last pod has done, as it was removed by force, deleted or evicted: the next
	// attempt has the same target.
	// +optional
	Uncertain bool `json:"uncertain,omitempty"`

	// claimUID is the UID of the claim that asked for the current or last attempt. The attempt is not continued for another claim
	// that has the volume by now; if it is absent, it is.
	// +optional
	ClaimUID types.UID `json:"claimUID,omitempty"`

	// stagedOn are the nodes that had the volume staged when the current attempt began.
	// +optional
	// +listType=atomic
	StagedOn []string `json:"stagedOn,omitempty"`
}

// VolumeAttributes are the attributes that a volume has, or is to have.
type VolumeAttributes struct {
	// class is the name of their VolumeAttributesClass.
	Class string `json:"class"`

	// parameters are those of the class, as it was when they were applied.
	// +optional
	// +mapType=atomic
	Parameters map[string]string `json:"parameters,omitempty"`
}

// VolumeModificationRecord is a modification that is in progress, or has failed.
type VolumeModificationRecord struct {
	// target are the attributes that the volume is to have. They are those of the class that the claim names, but do not change
	// while it is not known what the last pod has done.
	Target VolumeAttributes `json:"target"`

	ChangeAttempt `json:",inline"`

	// partial says that a pod of this modification has started and has not promised that it has changed nothing: the volume may
	// have some of the attributes. Only a pod that succeeds makes sure which ones it has, also if the claim names those again that
	// it had before. A record that says so is kept when the claim goes and the storage stays, and is not continued for another claim.
	// +optional
	Partial bool `json:"partial,omitempty"`

	// provisionerGeneration is the generation of the PavProvisioner that the current or last attempt was made with.
	// +optional
	ProvisionerGeneration int64 `json:"provisionerGeneration,omitempty"`
}

// VolumeExpansion defines how a volume grows. It is evaluated when the claim of a volume requests more than the volume has,
// also while the volume is staged.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeExpansion struct {
	// capacity is the capacity of the volume after the expansion: a quantity, or an integer number of bytes. It is not less
	// than what the claim requests. Default: what the expansion pod wrote to /pav/capacity, or else what the claim requests.
	// +optional
	Capacity *Template `json:"capacity,omitempty"`

	// podTemplate is the PodTemplateSpec of the expansion pod, which runs to completion. It may run again for the same
	// capacity, also after it has succeeded, and must then succeed; the volume may already be larger than the new capacity, and
	// must not shrink. Default: no pod; the volume has the capacity at once.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`

	// online says that the expansion pod may run while nodes have the volume staged. If not, PaV waits until no node has it
	// staged, and no node stages it until the pod has ended. Not a template. Default: true.
	// +optional
	Online *bool `json:"online,omitempty"`

	// nodePodTemplate is the PodTemplateSpec of the pod that makes the new capacity available on a node that has the volume
	// staged, for example as it grows a file system. It runs to completion after the expansion pod, beside the staging pod, and
	// finds /pav as that has left it. It may run again for the same capacity, also after it has succeeded, and must then succeed.
	// It is the same for every node that has the volume and, with the scope Pod, for every client pod. Default: no pod; nodes
	// have nothing to do.
	// +optional
	NodePodTemplate *Template `json:"nodePodTemplate,omitempty"`
}

// VolumeModification defines how the attributes of a volume change. It is evaluated when the claim of a volume names another
// VolumeAttributesClass, also while the volume is staged.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeModification struct {
	// parameters are the keys that the parameters of VolumeAttributesClasses may have. Not a template. Default: none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=253
	Parameters []string `json:"parameters,omitempty"`

	// podTemplate is the PodTemplateSpec of the modification pod, which runs to completion. It may run again for the same
	// attributes, also after it has succeeded, and must then succeed. Default: no pod; the volume has the attributes at once.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// IsOffline reports whether no node may have a volume staged while it is expanded.
func (e *VolumeExpansion) IsOffline() bool { return e != nil && e.Online != nil && !*e.Online }

// IsOf reports whether a claim with this UID counts as the one that asked for the attempt.
func (a *ChangeAttempt) IsOf(claim types.UID) bool { return a.ClaimUID == "" || a.ClaimUID == claim }

// HasEffects reports whether the volume may have some of the attributes.
func (m *VolumeModificationRecord) HasEffects() bool { return m != nil && (m.Partial || m.Uncertain) }
