package v1alpha1

import storagev1 "k8s.io/api/storage/v1"

// VolumeStaging defines how a volume is made available on a node. It is evaluated whenever a volume is being staged.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeStaging struct {
	// podTemplate is the PodTemplateSpec of the staging pod, which runs on the client's node. It makes the volume
	// available at /pav/volume, as a directory or a block special file, and then completes, or creates /pav/ready and
	// keeps running. Required.
	// +optional
	PodTemplate Template `json:"podTemplate,omitzero"`

	// scope says which client pods share a staging pod: all client pods of a node, or none. Not a template. A new
	// scope applies once no stages of the provisioner exist; see status.stagingScope.
	// +optional
	// +kubebuilder:default=Node
	Scope StagingScope `json:"scope,omitempty"`

	// fsGroupPolicy says when kubelet changes the owner and the permissions of a volume's files to a
	// client pod's fsGroup, as CSIDriver.spec.fsGroupPolicy does. Not a template.
	// +optional
	// +kubebuilder:default=ReadWriteOnceWithFSType
	// +kubebuilder:validation:Enum=ReadWriteOnceWithFSType;File;None
	FSGroupPolicy storagev1.FSGroupPolicy `json:"fsGroupPolicy,omitempty"`

	// recovery says what PaV does if a staging pod ends while clients use its volume. Not a template.
	// +optional
	// +kubebuilder:default=Restage
	Recovery StagingRecovery `json:"recovery,omitempty"`

	// onRotation says what nodes do with volumes that are buckets when their account is replaced. Not a template.
	// +optional
	// +kubebuilder:default=Keep
	OnRotation StagingRotation `json:"onRotation,omitempty"`

	// growsVolumes is true if staging pods make all of the volume's capacity available, as by growing the file system to the
	// size of its device, unless the volume is read-only. Then no pod of volumeExpansion.nodePodTemplate runs for a volume that
	// is staged after it has grown, and a copy can be larger than its source. Not a template. By default, false.
	// +optional
	GrowsVolumes bool `json:"growsVolumes,omitempty"`
}

// StagingScope says which client pods share a staging pod.
//
// +kubebuilder:validation:Enum=Node;Pod
type StagingScope string

// The scopes of staging.
const (
	// StagingScopeNode means that a volume is staged once on a node, for all its client pods there.
	StagingScopeNode StagingScope = "Node"

	// StagingScopePod means that a volume is staged separately for each client pod.
	StagingScopePod StagingScope = "Pod"
)

// StagingRecovery says what PaV does if a staging pod ends while clients use its volume.
//
// +kubebuilder:validation:Enum=Restage;None
type StagingRecovery string

// The ways of recovery.
const (
	// StagingRecoveryRestage means that a volume which is dead, because its staging pod has ended, is unstaged and
	// staged again while clients use it.
	StagingRecoveryRestage StagingRecovery = "Restage"

	// StagingRecoveryNone means that PaV only reports the loss.
	StagingRecoveryNone StagingRecovery = "None"
)

// StagingRotation says what nodes do with a volume that is a bucket when its account is replaced.
//
// +kubebuilder:validation:Enum=Keep;Restage
type StagingRotation string

// What nodes do at a rotation.
const (
	// RotationKeep means that a staging pod goes on with the account that it has, which is not revoked before the volume is unstaged.
	RotationKeep StagingRotation = "Keep"

	// RotationRestage means that the staging pod is stopped, and the volume staged again with its present account. Until then, what
	// client pods do with it fails; those that receive no mounts must be restarted. It needs the recovery Restage.
	RotationRestage StagingRotation = "Restage"
)

// VolumeUnstaging defines how staging is reverted. It is evaluated when a volume is unstaged.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeUnstaging struct {
	// podTemplate is the PodTemplateSpec of the unstaging pod, which runs to completion on the
	// staging pod's node, after the staging pod has ended and with the same /pav.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// Scope returns the scope of staging that is in force.
func (p *PavProvisioner) Scope() StagingScope {
	for _, scope := range []StagingScope{p.Status.StagingScope, p.Spec.VolumeStaging.Scope} {
		if scope != "" {
			return scope
		}
	}
	return StagingScopeNode
}
