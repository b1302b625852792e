package v1alpha1

import "slices"

// Driver is the CSI driver that serves /pav to workflow pods.
const Driver = Group

// Finalizers. PaV puts none on objects that tenants own.
const (
	// ProvisionerFinalizer holds a PavProvisioner while volumes, stages or snapshots of it exist.
	// Written and removed by the controller agent.
	ProvisionerFinalizer = Group + "/provisioner"

	// VolumeFinalizer holds a PavVolume until its storage is deleted.
	// Written and removed by the controller agent; a retained volume has none.
	VolumeFinalizer = Group + "/volume"

	// StageFinalizer holds a PavStage until its volume is unstaged.
	// Written and removed by the node agent, removed by the controller agent where the node is gone.
	StageFinalizer = Group + "/stage"

	// SnapshotFinalizer holds a PavSnapshot until its storage is deleted.
	// Written and removed by the controller agent; a retained snapshot has none.
	SnapshotFinalizer = Group + "/snapshot"

	// BucketFinalizer holds a PavBucket until its bucket is deleted, and a PavBucketAccess until its accounts are revoked.
	// Written and removed by the controller agent; the record of a retained bucket has none.
	BucketFinalizer = Group + "/bucket"

	// PodFinalizer holds a workflow pod until its outcome is recorded.
	// Written and removed by the agent that runs the pod, removed by the controller agent where the node is gone.
	PodFinalizer = Group + "/outcome"

	// PVFinalizer is external-provisioner's: it keeps a PersistentVolume until its PavVolume is ready and, if the
	// reclaim policy is Delete, until its storage is deleted. Written and removed by the controller agent.
	PVFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
)

// Labels of workflow pods, PavStages and PersistentVolumes, for selection only: values are short or hashes, full names
// are in annotations or the spec. No one but PaV's service accounts may set them on pods.
const (
	// WorkflowLabel is the workflow that a pod runs: one of the Workflow constants.
	WorkflowLabel = Group + "/workflow"

	// ProvisionerLabel is the PavProvisioner's name (a DNS label, so it fits). Also on CSIDrivers and PersistentVolumes; on
	// these, a policy accepts it only if it is the name of the CSI driver, so that a list by it can be relied on.
	ProvisionerLabel = Group + "/provisioner"

	// VolumeLabel is the hash of the volume's PersistentVolume name.
	VolumeLabel = Group + "/volume"

	// SourceLabel on a PavVolume that is created from a snapshot or another volume is the hash of the source's key.
	SourceLabel = Group + "/source"

	// StorageLabel on a PersistentVolume is the hash of its driver and handle, by which node agents find it. Written by
	// the controller agent.
	StorageLabel = Group + "/storage"

	// NodeLabel is the hash of the name of the node that a staging or unstaging pod or a PavStage belongs to. A PavVolume
	// has that of the node that the scheduler had chosen for the first pod of its claim, if it had chosen one.
	NodeLabel = Group + "/node"

	// StageLabel is the name of the PavStage that a staging or unstaging pod works for, or that the
	// validation pod of a statically provisioned volume does; no other pods have it.
	StageLabel = Group + "/stage"

	// EvictableLabel on a staging pod, "true", takes it from the protection of its PodDisruptionBudget, so that
	// the drain of its node ends. Written and removed by the controller agent; see package drain.
	EvictableLabel = Group + "/evictable"

	// AccessLabel on a Secret is the UID of the object that asked for access: PaV wrote the Secret, and may replace and delete it.
	AccessLabel = Group + "/access"

	// AllowPodsLabel on a namespace, set to "true" by an administrator, lets templates place their pods there.
	AllowPodsLabel = Group + "/allow-pods"
)

// Annotations of workflow pods: the full names behind the hashes.
const (
	// VolumeAnnotation is the PersistentVolume's name.
	VolumeAnnotation = Group + "/volume"

	// SnapshotAnnotation is the name of the PavSnapshot that a pod works for.
	SnapshotAnnotation = Group + "/snapshot"

	// BucketAnnotation is the name of the PavBucket that a pod works for.
	BucketAnnotation = Group + "/bucket"

	// AccessAnnotation is the name of the PavBucketAccess that a pod works for.
	AccessAnnotation = Group + "/access"

	// SealAnnotation on a grant pod is the public key with which the node agent seals the credentials that the pod leaves; see
	// package credentials. Written by the controller agent, with the pod.
	SealAnnotation = Group + "/seal"

	// AccountAnnotation is the number of the account that a grant or revocation pod is about.
	AccountAnnotation = Group + "/account"

	// PlannedBucketAnnotation on a creation pod of a bucket is the identifier that the definition gives the bucket, if it gives one.
	PlannedBucketAnnotation = Group + "/planned-bucket"

	// HandleAnnotation is the volume's handle.
	HandleAnnotation = Group + "/handle"

	// NodeAnnotation is the node's name.
	NodeAnnotation = Group + "/node"

	// AttemptAnnotation numbers the pods of a PavStage's workflow, or all pods of a PavVolume or a PavSnapshot, from 1.
	AttemptAnnotation = Group + "/attempt"

	// ResultAnnotation is what a pod of the controller agent left in /pav. Written once, by the agent of the pod's node, when the
	// containers have ended; see workflow.Result.
	ResultAnnotation = Group + "/result"

	// GivenAnnotation says that a creation pod that may choose the handle of the volume or snapshot, or one of a bucket, or a grant
	// pod, has got /pav, so that its result will follow. Written by the agent of the pod's node, before the containers start: kubelet may say of a container that
	// it never ran, because the container runtime has lost it with the power of the node.
	GivenAnnotation = Group + "/given"
)

// AdmittedAnnotation on a PavStage is the record that its pods were admitted, and what they may refer to: that is
// how the volume can be unstaged when its clients are gone. Written by the controller agent; see package
// admission. A policy keeps node agents from it.
const AdmittedAnnotation = Group + "/admitted"

// AdmitAnnotation on a staging pod asks the controller agent to judge it: because it has references, or because the
// unstaging pod will have some.
const AdmitAnnotation = Group + "/admit"

// The webhooks that judge the pods of agents, as errors of the API server name them.
const (
	// PodsWebhook judges the pods of node agents.
	PodsWebhook = "pods." + Group

	// ControllerPodsWebhook judges the pods of the controller agent.
	ControllerPodsWebhook = "controller-pods." + Group
)

// NotReadyTaint keeps pods away from a new node until PaV's drivers are registered there. Administrators register nodes with
// it; the controller agent removes it, if that is enabled.
const NotReadyTaint = Group + "/agent-not-ready"

// RetryAnnotation on a PavVolume or a PavStage requests the next attempt now, if the last one has failed and the next one
// would wait. The value is the time of the request, as RFC 3339 with microseconds. The agent that makes the attempts records
// the value that it has handled in status.lastHandledRetry, and never removes the annotation; see RetryRequested.
const RetryAnnotation = Group + "/retry"

// SyncAnnotation on a PavStage asks its node agent to write to the storage what the node has in memory of the volume. The value is
// the time of the request, as RFC 3339 with microseconds. The controller agent writes it; a later value replaces an earlier one. The
// node agent answers in status.syncedTime.
const SyncAnnotation = Group + "/sync"

// CredentialsNamespace has the keys of attempts to grant access, which the controller agent makes, and the Secrets that bucketAccessGrant
// names.
const CredentialsNamespace = "pav-credentials"

// RotateAnnotation on a PavBucketAccess, or on the object that asked for it, requests a new account. The value is the time of the
// request, as RFC 3339 with microseconds. It is handled once clients have an account whose attempt began later.
const RotateAnnotation = Group + "/rotate"

// RestageAnnotation on a PavStage is the number of an account of the volume's bucket. The controller agent writes it if a staging pod that has
// the credentials of an earlier one is to be replaced.
const RestageAnnotation = Group + "/restage"

// RotateEveryParameter of a class is how often accesses get a new account, as bucketAccessGrant.rotateEvery, which it overrides.
const RotateEveryParameter = Group + "/rotate-every"

// The workflows, values of WorkflowLabel. Names of their pods begin with the same word. The controller
// agent runs the pods of WorkflowsOfController, a node agent those of the others and the validation pods that
// have a StageLabel. WorkflowNodeExpansion is the expansion of a volume on a node that has it.
const (
	WorkflowValidation   = "validate"
	WorkflowCreation     = "create"
	WorkflowExpansion    = "expand"
	WorkflowModification = "modify"
	WorkflowDeletion     = "delete"

	WorkflowSnapshotCreation = "snapshot"
	WorkflowSnapshotDeletion = "unsnapshot"

	WorkflowBucketValidation = "validate-bucket"
	WorkflowBucketCreation   = "create-bucket"
	WorkflowBucketUpdate     = "update-bucket"
	WorkflowBucketDeletion   = "delete-bucket"

	WorkflowGrant      = "grant"
	WorkflowRevocation = "revoke"

	WorkflowStaging       = "stage"
	WorkflowUnstaging     = "unstage"
	WorkflowNodeExpansion = "grow"
)

// WorkflowsOfVolumes are the workflows of PavVolumes, in the order of a volume's life.
func WorkflowsOfVolumes() []string {
	return []string{WorkflowValidation, WorkflowCreation, WorkflowExpansion, WorkflowModification, WorkflowDeletion}
}

// WorkflowsOfSnapshots are the workflows of PavSnapshots.
func WorkflowsOfSnapshots() []string {
	return []string{WorkflowSnapshotCreation, WorkflowSnapshotDeletion}
}

// WorkflowsOfBuckets are the workflows of PavBuckets, in the order of a bucket's life.
func WorkflowsOfBuckets() []string {
	return []string{WorkflowBucketValidation, WorkflowBucketCreation, WorkflowBucketUpdate, WorkflowBucketDeletion}
}

// WorkflowsOfAccesses are the workflows of PavBucketAccesses.
func WorkflowsOfAccesses() []string {
	return []string{WorkflowGrant, WorkflowRevocation}
}

// WorkflowsOfController are the workflows whose pods the controller agent runs.
func WorkflowsOfController() []string {
	return slices.Concat(WorkflowsOfVolumes(), WorkflowsOfSnapshots(), WorkflowsOfBuckets(), WorkflowsOfAccesses())
}
