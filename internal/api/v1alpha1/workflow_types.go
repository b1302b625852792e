package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodReference refers to a workflow pod.
type PodReference struct {
	// namespace of the pod.
	Namespace string `json:"namespace"`

	// name of the pod.
	Name string `json:"name"`

	// uid of the pod, once the pod is known to be created. If the pod of a PavVolume is gone although its UID is
	// recorded, it was removed by force, and its effects are not known.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// judged says that the webhook must admit the staging pod of a PavStage: the controller agent records that in an
	// annotation of the PavStage before the API server creates the pod. If there is no such annotation, the pod was
	// never created.
	// +optional
	Judged bool `json:"judged,omitempty"`

	// due is since when the pod of a PavVolume has waited to be created: it is created as soon as it has a slot.
	// +optional
	Due *metav1.Time `json:"due,omitempty"`
}

// Reasons of conditions of PavVolumes and PavStages that wait for a workflow pod.
const (
	// ReasonPodNotStarted means that the pod cannot start.
	ReasonPodNotStarted = "PodNotStarted"

	// ReasonPodRunsLong means that the pod has run for longer than such pods usually do.
	ReasonPodRunsLong = "PodRunsLong"

	// ReasonBeingRead means that the pod waits until the readers of the volume have read its storage.
	ReasonBeingRead = "BeingRead"
)

// IsStoppedByRetry reports whether a retry stops the pod of an object with such a condition.
func IsStoppedByRetry(reason string) bool {
	return reason == ReasonPodNotStarted || reason == ReasonPodRunsLong
}

// StoppedByRetry returns the condition of a kind if a retry stops the pod that it reports, or nil.
func StoppedByRetry(conditions []metav1.Condition, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.Status != metav1.ConditionFalse || !IsStoppedByRetry(c.Reason) {
		return nil
	}
	return c
}

// FailureReason is the kind of a failure, for programs. There may be more in later versions.
type FailureReason string

const (
	// FailurePodFailed means that a container of the pod failed, or the pod was deleted or evicted before it succeeded.
	FailurePodFailed FailureReason = "PodFailed"

	// FailurePodRemoved means that the pod was removed by force before its outcome was known.
	FailurePodRemoved FailureReason = "PodRemoved"

	// FailurePodStopped means that PaV deleted the pod, as a retry was requested. The next attempt does not wait.
	FailurePodStopped FailureReason = "PodStopped"

	// FailureInfeasible means that the pod failed and left /pav/infeasible: it has changed nothing, and would fail again.
	FailureInfeasible FailureReason = "Infeasible"

	// FailureOutputInvalid means that what the pod left in /pav is missing or invalid.
	FailureOutputInvalid FailureReason = "OutputInvalid"

	// FailureHandleInUse means that another object uses the storage with the volume's handle.
	FailureHandleInUse FailureReason = "HandleInUse"

	// FailureHandleUnknown means that it is not known which storage the creation pod made, because the pod is gone.
	FailureHandleUnknown FailureReason = "HandleUnknown"

	// FailureRefused means that the request cannot be served, because of the definition or of another object; no pod was created.
	FailureRefused FailureReason = "Refused"

	// FailureNamespaceNotOpen means that the pod's namespace is not open to workflow pods.
	FailureNamespaceNotOpen FailureReason = "NamespaceNotOpen"

	// FailureQuotaExceeded means that a ResourceQuota of the pod's namespace has no room for the pod.
	FailureQuotaExceeded FailureReason = "QuotaExceeded"

	// FailurePodSecurity means that the pod violates the Pod Security Standard that its namespace enforces.
	FailurePodSecurity FailureReason = "PodSecurity"

	// FailurePodRefused means that the pod cannot be created for another reason, such as an admission webhook that denies it.
	FailurePodRefused FailureReason = "PodRefused"
)

// WorkflowFailure is the failure of a workflow.
type WorkflowFailure struct {
	// workflow is validate, create, expand, modify, delete, snapshot, unsnapshot, validate-bucket, create-bucket, update-bucket,
	// delete-bucket, grant, revoke, stage, grow or unstage.
	Workflow string `json:"workflow"`

	// reason is the kind of the failure: PodFailed, PodRemoved, PodStopped, Infeasible, OutputInvalid, HandleInUse, HandleUnknown, Refused,
	// NamespaceNotOpen, QuotaExceeded, PodSecurity or PodRefused. There may be more in later versions.
	// +optional
	Reason FailureReason `json:"reason,omitempty"`

	// podNamespace is the namespace of the pod that failed or was refused; empty if there was none, for example because
	// its template is wrong.
	// +optional
	PodNamespace string `json:"podNamespace,omitempty"`

	// podName is the name of the pod that failed; empty if the pod was not created.
	// +optional
	PodName string `json:"podName,omitempty"`

	// exitCode is the exit code of the first container that failed.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// message says what failed, for people. Events and conditions that users of claims see repeat it.
	Message string `json:"message"`

	// log is the end of the log, or of the termination log, of the container that failed. It is for administrators:
	// PaV repeats it nowhere else, as the logs of storage pods may have data about other users' storage.
	// +optional
	Log string `json:"log,omitempty"`

	// time is when the workflow failed.
	Time metav1.Time `json:"time"`

	// nextAttemptTime is when the next attempt is due. It begins earlier if a retry is requested, if the definition of a
	// PavVolume is changed, or, for the restaging of a volume, if the node agent restarts. It begins later if something
	// else has to end first, such as the reversal of this attempt. Empty if kubelet decides when a volume is staged again,
	// and if PaV waits until another object is deleted that uses the storage with the volume's handle.
	// +optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`
}
