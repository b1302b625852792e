package v1alpha1

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProvisioningMode says how volumes of a provisioner come to be.
//
// +kubebuilder:validation:Enum=Dynamic;Static
type ProvisioningMode string

// The provisioning modes.
const (
	// ProvisioningModeDynamic means that claims of a StorageClass create volumes.
	ProvisioningModeDynamic ProvisioningMode = "Dynamic"

	// ProvisioningModeStatic means that administrators write PersistentVolumes themselves.
	ProvisioningModeStatic ProvisioningMode = "Static"
)

// Condition types of a PavProvisioner.
const (
	// ProvisionerAccepted is true when the definition can be used.
	ProvisionerAccepted = "Accepted"

	// ProvisionerReady is true when the provisioner's CSIDriver exists and is PaV's.
	ProvisionerReady = "Ready"

	// ProvisionerDeleting is true while the object waits for its last volume and stage.
	ProvisionerDeleting = "Deleting"
)

// ProvisionerInvalid is the reason of the condition Accepted of a definition that has mistakes, and came
// in past the webhook that would have refused it. It goes on being served as far as it can be.
const ProvisionerInvalid = "Invalid"

// PavProvisioner defines a volume provisioner by templates of pods. Its name is the provisioner of
// StorageClasses and the CSI driver of PersistentVolumes.
//
// +kubebuilder:object:root=true
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:resource:scope=Cluster,shortName=pav,singular=pavprovisioner,path=pavprovisioners
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Modes",type=string,JSONPath=`.spec.provisioningModes`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumes.total`
// +kubebuilder:printcolumn:name="Failing",type=integer,JSONPath=`.status.volumes.failing`,priority=1
// +kubebuilder:printcolumn:name="Stages",type=integer,JSONPath=`.status.stages.total`,priority=1
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.nodes.summary`,description="The nodes whose kubelets know the driver, of those that PaV runs on."
// +kubebuilder:printcolumn:name="Deleting",type=string,JSONPath=`.status.conditions[?(@.type=="Deleting")].message`,description="What a PavProvisioner that is to be deleted waits for. It goes on serving the volumes that it has."
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.status.stagingScope`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit first and last"
type PavProvisioner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the administrator wants. Every string at any depth below it, except
	// provisioningModes and allowedClaimNamespaces, is a Jinja template.
	Spec PavProvisionerSpec `json:"spec"`

	// Status is what PaV found. Only PaV writes it.
	// +optional
	Status PavProvisionerStatus `json:"status,omitempty"`
}

// PavProvisionerList is a list of PavProvisioners.
//
// +kubebuilder:object:root=true
type PavProvisionerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PavProvisioner `json:"items"`
}

// Template is a field that is given as its plain value, or as a string that is a Jinja template. A
// template that sets the variable yaml to true has its text parsed as YAML, and the field takes
// the value that results; so that any field, also one that is an object, may be a template.
// Schema and value are checked when the workflow that the field belongs to is evaluated.
type Template = apiextensionsv1.JSON

// PavProvisionerSpec is the definition of a provisioner. Like all objects in it, it keeps fields that it does
// not know, so that admission can refuse them and say what was meant.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.volumeCreation) || 'Dynamic' in self.provisioningModes",fieldPath=".volumeCreation",message="may only be specified if provisioningModes contains Dynamic"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeDeletion) || 'Dynamic' in self.provisioningModes",fieldPath=".volumeDeletion",message="may only be specified if provisioningModes contains Dynamic"
type PavProvisionerSpec struct {
	// ProvisioningModes are the modes that the provisioner supports: Dynamic, Static or both. Not templates.
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	ProvisioningModes []ProvisioningMode `json:"provisioningModes"`

	// allowedClaimNamespaces are the namespaces whose claims get_pvc looks up, besides the namespace of the
	// volume's own claim. Default: all. An empty list allows no other namespace. Not templates.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	AllowedClaimNamespaces []string `json:"allowedClaimNamespaces,omitzero"`

	// VolumeValidation says which volumes the provisioner can provision.
	// +optional
	VolumeValidation *VolumeValidation `json:"volumeValidation,omitempty"`

	// VolumeCreation says how a volume is created, in dynamic provisioning.
	// +optional
	VolumeCreation *VolumeCreation `json:"volumeCreation,omitempty"`

	// VolumeDeletion says how a dynamically provisioned volume is deleted.
	// +optional
	VolumeDeletion *VolumeDeletion `json:"volumeDeletion,omitempty"`

	// VolumeStaging says how a volume is made available on a node.
	VolumeStaging VolumeStaging `json:"volumeStaging"`

	// VolumeUnstaging says how the effects of staging are reverted.
	// +optional
	VolumeUnstaging *VolumeUnstaging `json:"volumeUnstaging,omitempty"`
}

// VolumeValidation says which volumes a provisioner can provision. It is evaluated whenever a
// volume is being provisioned dynamically, or a statically provisioned one is being staged.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeValidation struct {
	// VolumeModes is the list of supported volume modes, of Filesystem and Block. Default: [Filesystem].
	// +optional
	VolumeModes *Template `json:"volumeModes,omitempty"`

	// AccessModes is the list of supported access modes, of ReadWriteOnce, ReadOnlyMany and
	// ReadWriteMany. Default: all three. ReadWriteOncePod is supported where ReadWriteOnce is.
	// +optional
	AccessModes *Template `json:"accessModes,omitempty"`

	// MinCapacity is the least capacity that may be the limit of a claim's storage, or that a
	// PersistentVolume may have: a quantity, or an integer number of bytes. Default: none.
	// +optional
	MinCapacity *Template `json:"minCapacity,omitempty"`

	// MaxCapacity is the greatest capacity that a claim may request, or that a PersistentVolume may
	// have: a quantity, or an integer number of bytes. Default: none.
	// +optional
	MaxCapacity *Template `json:"maxCapacity,omitempty"`

	// PodTemplate is the PodTemplateSpec of the validation pod, which runs to completion and fails
	// if the volume that is asked for is invalid.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// VolumeCreation says how a volume is created. It is evaluated whenever a claim provisions a volume.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeCreation struct {
	// Handle is the volume's handle, which must be valid as a PersistentVolume's spec.csi.volumeHandle.
	// Default: what the creation pod wrote to /pav/handle, or else pvc-<uid of the claim>.
	// +optional
	Handle *Template `json:"handle,omitempty"`

	// Capacity is the volume's capacity: a quantity, or an integer number of bytes.
	// Default: what the creation pod wrote to /pav/capacity.
	// +optional
	Capacity *Template `json:"capacity,omitempty"`

	// AccessibleTopology says from which nodes the volume can be used: a list of mappings of node
	// labels to values. A node needs all labels of any one of the mappings. Default: from all nodes.
	// +optional
	AccessibleTopology *Template `json:"accessibleTopology,omitempty"`

	// PodTemplate is the PodTemplateSpec of the creation pod, which runs to completion.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// VolumeDeletion says how a volume is deleted. It is evaluated whenever a volume is being deleted.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeDeletion struct {
	// PodTemplate is the PodTemplateSpec of the deletion pod, which runs to completion.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// VolumeStaging says how a volume is made available on a node. It is evaluated whenever a volume is being staged.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeStaging struct {
	// PodTemplate is the PodTemplateSpec of the staging pod, which runs on the client's node. It
	// makes the volume available at /pav/volume, as a directory or a block special file, and then
	// completes, or creates /pav/ready and goes on running.
	PodTemplate Template `json:"podTemplate"`

	// Scope says what shares a staging pod: all client pods of a node, or none. Not a template.
	// While stages of the provisioner exist, the former scope stays in force; see status.stagingScope.
	// +optional
	// +kubebuilder:default=Node
	Scope StagingScope `json:"scope,omitempty"`

	// FSGroupPolicy says when kubelet changes the owner and the permissions of a volume's files to a
	// client pod's fsGroup, as CSIDriver.spec.fsGroupPolicy does. Not a template.
	// +optional
	// +kubebuilder:default=ReadWriteOnceWithFSType
	// +kubebuilder:validation:Enum=ReadWriteOnceWithFSType;File;None
	FSGroupPolicy storagev1.FSGroupPolicy `json:"fsGroupPolicy,omitempty"`

	// Recovery says what is done where a staging pod ends while clients use its volume. Not a template.
	// +optional
	// +kubebuilder:default=Restage
	Recovery StagingRecovery `json:"recovery,omitempty"`
}

// StagingScope says what shares a staging pod.
//
// +kubebuilder:validation:Enum=Node;Pod
type StagingScope string

// The scopes of staging.
const (
	// StagingScopeNode means that a volume is staged once on a node, for all its client pods there.
	StagingScopeNode StagingScope = "Node"

	// StagingScopePod means that a volume is staged for each client pod by itself.
	StagingScopePod StagingScope = "Pod"
)

// StagingRecovery says what is done where a staging pod ends under its clients.
//
// +kubebuilder:validation:Enum=Restage;None
type StagingRecovery string

// The ways of recovery.
const (
	// StagingRecoveryRestage means that a volume which no longer answers, because its staging pod has
	// ended, is unstaged and staged again under its clients.
	StagingRecoveryRestage StagingRecovery = "Restage"

	// StagingRecoveryNone means that the loss is told, and nothing is done about it.
	StagingRecoveryNone StagingRecovery = "None"
)

// VolumeUnstaging says how staging is reverted. It is evaluated whenever a volume is being unstaged.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeUnstaging struct {
	// PodTemplate is the PodTemplateSpec of the unstaging pod, which runs to completion on the
	// staging pod's node, after the staging pod has ended and with the same /pav.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// PavProvisionerStatus is what PaV found of a provisioner.
type PavProvisionerStatus struct {
	// ObservedGeneration is the generation of the spec that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// StagingScope is the scope of staging that is in force: that of the spec as it was when the first of
	// the present stages began.
	// +optional
	StagingScope StagingScope `json:"stagingScope,omitempty"`

	// Volumes counts the provisioner's PavVolumes, and so its dynamically provisioned volumes. Failing
	// are those whose last attempt at creation or deletion failed.
	// +optional
	Volumes *ProvisionerCount `json:"volumes,omitempty"`

	// Stages counts the provisioner's PavStages. Failing are those whose last attempt at staging or
	// unstaging failed, or that are degraded.
	// +optional
	Stages *ProvisionerCount `json:"stages,omitempty"`

	// Nodes counts the nodes whose kubelets know the provisioner's driver.
	// +optional
	Nodes *ProvisionerNodes `json:"nodes,omitempty"`

	// Conditions are Accepted, Ready and Deleting.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProvisionerCount counts objects of a provisioner, as they were a moment ago.
type ProvisionerCount struct {
	// Total is how many there are.
	Total int32 `json:"total"`

	// Failing is how many of them have failed and are tried again.
	Failing int32 `json:"failing"`
}

// ProvisionerNodes counts the nodes that a provisioner is registered on.
type ProvisionerNodes struct {
	// Registered is how many kubelets know the provisioner's driver.
	Registered int32 `json:"registered"`

	// Wanted is how many nodes PaV's node agent has registered with their kubelets on.
	Wanted int32 `json:"wanted"`

	// Summary is both, for people: "2/3".
	Summary string `json:"summary"`
}

// Refusal returns why the provisioner must not be used, or "". A definition with mistakes is used as
// far as it goes: its volumes have to be unstaged and deleted.
func (p *PavProvisioner) Refusal() string {
	for _, c := range p.Status.Conditions {
		if c.Type == ProvisionerAccepted && c.Status == metav1.ConditionFalse && c.Reason != ProvisionerInvalid {
			return c.Message
		}
	}
	return ""
}

// Supports reports whether the provisioner supports the mode.
func (p *PavProvisioner) Supports(mode ProvisioningMode) bool {
	return slices.Contains(p.Spec.ProvisioningModes, mode)
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
