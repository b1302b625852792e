package v1alpha1

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProvisioningMode says how volumes of a provisioner are created.
//
// +kubebuilder:validation:Enum=Dynamic;Static
type ProvisioningMode string

// The provisioning modes.
const (
	// ProvisioningModeDynamic means that volumes are created for claims of a StorageClass.
	ProvisioningModeDynamic ProvisioningMode = "Dynamic"

	// ProvisioningModeStatic means that administrators write PersistentVolumes themselves.
	ProvisioningModeStatic ProvisioningMode = "Static"
)

// Condition types of a PavProvisioner.
const (
	// ProvisionerAccepted is true when the definition can be used.
	ProvisionerAccepted = "Accepted"

	// ProvisionerReady is true when the provisioner's CSIDriver exists and is PaV's, and the object is not being deleted.
	ProvisionerReady = "Ready"

	// ProvisionerDeleting is true while the deletion of the object waits for its last volume and stage.
	ProvisionerDeleting = "Deleting"
)

// ProvisionerInvalid is the reason of the condition Accepted of a definition that has mistakes, which the webhook did
// not check. Its volumes are served as far as possible.
const ProvisionerInvalid = "Invalid"

// PavProvisioner defines a volume provisioner with pod templates. Its name is the provisioner of StorageClasses and
// the CSI driver of PersistentVolumes.
//
// +kubebuilder:object:root=true
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:resource:scope=Cluster,shortName=pav,singular=pavprovisioner,path=pavprovisioners
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Modes",type=string,JSONPath=`.spec.provisioningModes`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumes.total`
// +kubebuilder:printcolumn:name="Failing",type=integer,JSONPath=`.status.failing`,priority=1
// +kubebuilder:printcolumn:name="Stages",type=integer,JSONPath=`.status.stages.total`,priority=1
// +kubebuilder:printcolumn:name="Snapshots",type=integer,JSONPath=`.status.snapshots.total`,priority=1
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.nodes.summary`,description="The nodes on which the driver is registered, of those on which PaV runs."
// +kubebuilder:printcolumn:name="Deleting",type=string,JSONPath=`.status.conditions[?(@.type=="Deleting")].message`,description="What the deletion of a PavProvisioner waits for. Its volumes are still served."
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.status.stagingScope`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="metadata.name must be a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit first and last"
type PavProvisioner struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the definition. Every string at any depth below it, except in provisioningModes and
	// allowedClaimNamespaces, is a Jinja template.
	Spec PavProvisionerSpec `json:"spec"`

	// status is the state of the provisioner. Only PaV writes it.
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

// Template is a plain value, or a string that is a Jinja template. If a template sets the variable yaml to true, its
// text is rendered and then parsed as YAML, and the field gets the resulting value. So any field, even an object, may
// be a template. Schema and value are checked when the workflow of the field is evaluated.
type Template = apiextensionsv1.JSON

// PavProvisionerSpec is the definition of a provisioner. Unknown fields are preserved, in all objects below it, so
// that admission can reject them and suggest the right name. The schema requires no field, as the API server would
// then reject an object before admission can name all of its mistakes; admission requires those marked Required.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.volumeCreation) || !has(self.provisioningModes) || 'Dynamic' in self.provisioningModes",fieldPath=".volumeCreation",message="may only be specified if provisioningModes contains Dynamic"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeDeletion) || !has(self.provisioningModes) || 'Dynamic' in self.provisioningModes",fieldPath=".volumeDeletion",message="may only be specified if provisioningModes contains Dynamic"
type PavProvisionerSpec struct {
	// provisioningModes are the modes that the provisioner supports: Dynamic, Static or both. Not templates. Required.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	ProvisioningModes []ProvisioningMode `json:"provisioningModes,omitempty"`

	// allowedClaimNamespaces are the namespaces whose claims get_pvc looks up, besides the namespace of the
	// volume's own claim. Default: all. An empty list allows no other namespace. Not templates.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=63
	AllowedClaimNamespaces []string `json:"allowedClaimNamespaces,omitzero"`

	// volumeValidation defines which volumes the provisioner supports.
	// +optional
	VolumeValidation *VolumeValidation `json:"volumeValidation,omitempty"`

	// volumeCreation defines how a volume is created, in dynamic provisioning.
	// +optional
	VolumeCreation *VolumeCreation `json:"volumeCreation,omitempty"`

	// volumeExpansion defines how a dynamically provisioned volume grows when its claim requests more. Default: volumes
	// cannot grow. The StorageClass allows claims to request more with allowVolumeExpansion.
	// +optional
	VolumeExpansion *VolumeExpansion `json:"volumeExpansion,omitempty"`

	// volumeModification defines how the attributes of a dynamically provisioned volume change. Default: volumes have no such
	// attributes, and claims may name no VolumeAttributesClass.
	// +optional
	VolumeModification *VolumeModification `json:"volumeModification,omitempty"`

	// volumeDeletion defines how a dynamically provisioned volume is deleted.
	// +optional
	VolumeDeletion *VolumeDeletion `json:"volumeDeletion,omitempty"`

	// snapshotCreation defines how a snapshot of a volume is created. Default: volumes cannot be snapshotted.
	// +optional
	SnapshotCreation *SnapshotCreation `json:"snapshotCreation,omitempty"`

	// snapshotDeletion defines how a snapshot is deleted.
	// +optional
	SnapshotDeletion *SnapshotDeletion `json:"snapshotDeletion,omitempty"`

	// volumeStaging defines how a volume is made available on a node. Required, unless there is bucketCreation or
	// bucketAccessGrant: without it, the provisioner has no volumes.
	// +optional
	VolumeStaging VolumeStaging `json:"volumeStaging,omitzero"`

	// volumeUnstaging defines how staging is reverted.
	// +optional
	VolumeUnstaging *VolumeUnstaging `json:"volumeUnstaging,omitempty"`

	// bucketValidation defines which buckets the provisioner supports.
	// +optional
	BucketValidation *BucketValidation `json:"bucketValidation,omitempty"`

	// bucketCreation defines how a bucket is created. Default: only existing buckets can be used.
	// +optional
	BucketCreation *BucketCreation `json:"bucketCreation,omitempty"`

	// bucketUpdate defines how a bucket changes when an ObjectBucketClaim's spec.additionalConfig does. Default: such changes have no
	// effect.
	// +optional
	BucketUpdate *BucketUpdate `json:"bucketUpdate,omitempty"`

	// bucketDeletion defines how a bucket is deleted.
	// +optional
	BucketDeletion *BucketDeletion `json:"bucketDeletion,omitempty"`

	// bucketAccessGrant defines how access to buckets is granted.
	// +optional
	BucketAccessGrant *BucketAccessGrant `json:"bucketAccessGrant,omitempty"`

	// bucketAccessRevoke defines how access to buckets is revoked. Default: accounts that grant pods have made go on working until
	// someone deletes them in the store. An event names each account that is left so.
	// +optional
	BucketAccessRevoke *BucketAccessRevoke `json:"bucketAccessRevoke,omitempty"`
}

// HasBuckets reports whether the provisioner serves buckets.
func (s *PavProvisionerSpec) HasBuckets() bool {
	return s.BucketCreation != nil || s.BucketAccessGrant != nil
}

// VolumeValidation defines which volumes a provisioner supports. It is evaluated when a volume is provisioned
// dynamically, and when a statically provisioned volume is staged.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeValidation struct {
	// volumeModes is the list of supported volume modes, of Filesystem and Block. Default: [Filesystem].
	// +optional
	VolumeModes *Template `json:"volumeModes,omitempty"`

	// accessModes is the list of supported access modes, of ReadWriteOnce, ReadOnlyMany and
	// ReadWriteMany. Default: all three. ReadWriteOncePod is supported where ReadWriteOnce is.
	// +optional
	AccessModes *Template `json:"accessModes,omitempty"`

	// minCapacity is the minimum of the storage limit of a claim, and of the capacity of a PersistentVolume: a
	// quantity, or an integer number of bytes. Default: none.
	// +optional
	MinCapacity *Template `json:"minCapacity,omitempty"`

	// maxCapacity is the maximum of the storage request of a claim, and of the capacity of a PersistentVolume: a
	// quantity, or an integer number of bytes. Default: none.
	// +optional
	MaxCapacity *Template `json:"maxCapacity,omitempty"`

	// podTemplate is the PodTemplateSpec of the validation pod, which runs to completion and fails if the requested
	// volume is invalid.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// VolumeCreation defines how a volume is created. It is evaluated when a volume is provisioned for a claim.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeCreation struct {
	// handle is the volume's handle, which must be valid as a PersistentVolume's spec.csi.volumeHandle.
	// Default: what the creation pod wrote to /pav/handle, or else pvc-<uid of the claim>.
	// +optional
	Handle *Template `json:"handle,omitempty"`

	// capacity is the volume's capacity: a quantity, or an integer number of bytes.
	// Default: what the creation pod wrote to /pav/capacity.
	// +optional
	Capacity *Template `json:"capacity,omitempty"`

	// accessibleTopology has the nodes from which the volume can be used: a list of mappings from node labels to
	// values. A node needs all labels of at least one of the mappings. Default: all nodes.
	// +optional
	AccessibleTopology *Template `json:"accessibleTopology,omitempty"`

	// podTemplate is the PodTemplateSpec of the creation pod, which runs to completion.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`

	// fromBucket says that a volume is a bucket: it is created as bucketCreation says, and deleted as bucketDeletion does. The bucket
	// is its own, and the staging pod finds the credentials of an account for it in the Secret bucket.secretName. Not a template.
	// Default: false.
	// +optional
	FromBucket bool `json:"fromBucket,omitempty"`

	// dataSources are the kinds of objects that volumes can be created from: VolumeSnapshot, PersistentVolumeClaim or both. The
	// creation pod copies the data of the variable source, if it is not none. Not templates. Default: none; claims with such a source
	// are refused.
	// +optional
	// +listType=set
	DataSources []DataSourceKind `json:"dataSources,omitempty"`

	// dependsOnSource says that a volume cannot exist without the snapshot or the volume that it was created from: the storage of that
	// is not deleted while the volume exists. Not a template. Default: false.
	// +optional
	DependsOnSource bool `json:"dependsOnSource,omitempty"`
}

// VolumeDeletion defines how a volume is deleted. It is evaluated when a volume is deleted.
//
// +kubebuilder:pruning:PreserveUnknownFields
type VolumeDeletion struct {
	// podTemplate is the PodTemplateSpec of the deletion pod, which runs to completion.
	// +optional
	PodTemplate *Template `json:"podTemplate,omitempty"`
}

// PavProvisionerStatus is the state of a provisioner.
type PavProvisionerStatus struct {
	// observedGeneration is the generation of the spec that the conditions are based on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// stagingScope is the scope of staging that is in force: the scope in the spec when the first of the current
	// stages began.
	// +optional
	StagingScope StagingScope `json:"stagingScope,omitempty"`

	// volumes counts the provisioner's PavVolumes, and so its dynamically provisioned volumes. Failing
	// are those whose last attempt at creation or deletion failed.
	// +optional
	Volumes *ProvisionerCount `json:"volumes,omitempty"`

	// stages counts the provisioner's PavStages. Failing are those whose last attempt at staging or
	// unstaging failed, or that are degraded.
	// +optional
	Stages *ProvisionerCount `json:"stages,omitempty"`

	// snapshots counts the provisioner's PavSnapshots. Failing are those whose last attempt at creation or deletion failed.
	// +optional
	Snapshots *ProvisionerCount `json:"snapshots,omitempty"`

	// failing is the number of PavVolumes, PavStages and PavSnapshots that are failing.
	// +optional
	Failing *int32 `json:"failing,omitempty"`

	// nodes counts the nodes on which the provisioner's driver is registered.
	// +optional
	Nodes *ProvisionerNodes `json:"nodes,omitempty"`

	// conditions are Accepted, Ready and Deleting.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProvisionerCount counts objects of a provisioner, as they were a moment ago.
type ProvisionerCount struct {
	// total is how many there are.
	Total int32 `json:"total"`

	// failing is how many of them have failed and are retried.
	Failing int32 `json:"failing"`
}

// ProvisionerNodes counts the nodes that a provisioner is registered on.
type ProvisionerNodes struct {
	// registered is the number of nodes on which the provisioner's driver is registered.
	Registered int32 `json:"registered"`

	// wanted is the number of nodes on which PaV's node agent is registered.
	Wanted int32 `json:"wanted"`

	// summary is both, for people: "2/3".
	Summary string `json:"summary"`
}

// Refusal returns why the provisioner must not be used, or "". A definition with mistakes is used as far as possible,
// as its volumes must be unstaged and deleted.
func (p *PavProvisioner) Refusal() string {
	for _, c := range p.Status.Conditions {
		if c.Type == ProvisionerAccepted && c.Status == metav1.ConditionFalse && c.Reason != ProvisionerInvalid {
			return c.Message
		}
	}
	return ""
}

// IsAccepted reports whether the controller agent has checked the provisioner, and does not refuse it.
func (p *PavProvisioner) IsAccepted() bool {
	return meta.FindStatusCondition(p.Status.Conditions, ProvisionerAccepted) != nil && p.Refusal() == ""
}

// Supports reports whether the provisioner supports the mode.
func (p *PavProvisioner) Supports(mode ProvisioningMode) bool {
	return slices.Contains(p.Spec.ProvisioningModes, mode)
}
