package v1alpha1

// Driver is the CSI driver that serves /pav to workflow pods.
const Driver = Group

// Finalizers. PaV puts none on objects that tenants own.
const (
	// ProvisionerFinalizer holds a PavProvisioner while volumes or stages of it exist.
	// Written and removed by the controller agent.
	ProvisionerFinalizer = Group + "/provisioner"

	// VolumeFinalizer holds a PavVolume until its storage is deleted.
	// Written and removed by the controller agent; a retained volume has none.
	VolumeFinalizer = Group + "/volume"

	// StageFinalizer holds a PavStage until its volume is unstaged.
	// Written and removed by the node agent, removed by the controller agent where the node is gone.
	StageFinalizer = Group + "/stage"

	// PodFinalizer holds a workflow pod until its outcome is recorded.
	// Written and removed by the agent that runs the pod, removed by the controller agent where the node is gone.
	PodFinalizer = Group + "/outcome"

	// PVFinalizer is external-provisioner's: it keeps a PersistentVolume whose reclaim policy is
	// Delete until its storage is deleted. Written and removed by the controller agent.
	PVFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
)

// Labels of workflow pods and PavStages, for selection only: values are short or hashes, full names
// are in annotations or the spec. No one but PaV's service accounts may set them on pods.
const (
	// WorkflowLabel is the workflow that a pod runs: one of the Workflow constants.
	WorkflowLabel = Group + "/workflow"

	// ProvisionerLabel is the PavProvisioner's name (a DNS label, so it fits). Also on CSIDrivers.
	ProvisionerLabel = Group + "/provisioner"

	// VolumeLabel is the hash of the volume's PersistentVolume name.
	VolumeLabel = Group + "/volume"

	// NodeLabel is the hash of the name of the node that a staging or unstaging pod or a PavStage belongs to.
	NodeLabel = Group + "/node"

	// StageLabel is the name of the PavStage that a staging or unstaging pod works for.
	StageLabel = Group + "/stage"

	// AllowPodsLabel on a namespace, set to "true" by an administrator, lets templates place their pods there.
	AllowPodsLabel = Group + "/allow-pods"
)

// Annotations of workflow pods: the full names behind the hashes.
const (
	// VolumeAnnotation is the PersistentVolume's name.
	VolumeAnnotation = Group + "/volume"

	// HandleAnnotation is the volume's handle.
	HandleAnnotation = Group + "/handle"

	// NodeAnnotation is the node's name.
	NodeAnnotation = Group + "/node"

	// AttemptAnnotation is the number of the attempt that the pod is, from 1.
	AttemptAnnotation = Group + "/attempt"
)

// The workflows, values of WorkflowLabel. Names of their pods begin with the same word.
const (
	WorkflowStaging   = "stage"
	WorkflowUnstaging = "unstage"
)
