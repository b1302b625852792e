package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PodReference names a workflow pod.
type PodReference struct {
	// Namespace of the pod.
	Namespace string `json:"namespace"`

	// Name of the pod.
	Name string `json:"name"`

	// UID of the pod, once it is known to have been created. A PavVolume's pod that is gone although
	// its UID is recorded was removed by force, and may have done anything.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// Judged says that the API server does not create the staging pod of a PavStage before the controller agent has put
	// on the PavStage's record that its pods are admitted. Where there is no such record, the pod was never created.
	// +optional
	Judged bool `json:"judged,omitempty"`

	// Due is since when the pod of a PavVolume has been due: it is created as soon as there is a place for it.
	// +optional
	Due *metav1.Time `json:"due,omitempty"`
}

// WorkflowFailure is how a workflow failed.
type WorkflowFailure struct {
	// Workflow is validate, create, delete, stage or unstage.
	Workflow string `json:"workflow"`

	// PodNamespace is the namespace of the pod that failed; empty if there was none, for example because its template is wrong.
	// +optional
	PodNamespace string `json:"podNamespace,omitempty"`

	// PodName is the name of the pod that failed.
	// +optional
	PodName string `json:"podName,omitempty"`

	// ExitCode is that of the first container that failed.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// Message is what went wrong, for people. Events and conditions that users of claims see repeat it.
	Message string `json:"message"`

	// log is the end of what the container that failed logged, or wrote to its termination log. It is for
	// administrators: PaV repeats it nowhere else, as the logs of storage pods may tell of other users' storage.
	// +optional
	Log string `json:"log,omitempty"`

	// Time is when it went wrong.
	Time metav1.Time `json:"time"`
}
