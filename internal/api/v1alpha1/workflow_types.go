package v1alpha1

import (
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

// WorkflowFailure is the failure of a workflow.
type WorkflowFailure struct {
	// workflow is validate, create, delete, stage or unstage.
	Workflow string `json:"workflow"`

	// podNamespace is the namespace of the pod that failed; empty if there was none, for example because its template
	// is wrong.
	// +optional
	PodNamespace string `json:"podNamespace,omitempty"`

	// podName is the name of the pod that failed.
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
}
