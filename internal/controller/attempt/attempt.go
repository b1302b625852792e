package attempt

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// Attempt is a workflow pod as the status of its object records it, and as Kubernetes has it.
type Attempt struct {
	// Now is the time of the cluster.
	Now time.Time

	// Ref is the recorded pod; nil if none is recorded. It has no UID until the pod is known to be created.
	Ref *pavv1.PodReference

	// Pods are all pods of the object.
	Pods []corev1.Pod

	// Object is the kind and name of the object, as commands in messages have it: "pavvolume/pvc-1".
	Object string

	// Step is what the pod is for. It is the reason of the condition while the pod runs.
	Step string

	// Doing says the same in words, with the pod as the subject: "is creating the volume".
	Doing string

	// NeedsResult says that success counts only with the files that the pod left in /pav.
	NeedsResult bool

	// ByPhase says that success counts only when the phase says so: nobody waits for the pod, and kubelet may have
	// stopped a container that then ended well.
	ByPhase bool

	// SelectedNode says that the scheduler selected the pod's node for the claim's first consumer. If the pod does not
	// fit there, the scheduler may choose another node.
	SelectedNode bool

	// Contended says that other objects of the provisioner wait for a slot.
	Contended bool

	// Retried says that a retry was requested. If it was reported that the pod runs for long or cannot start, the request
	// came after the report.
	Retried bool

	// Reported is the reason of the condition that the object has now.
	Reported string
}

// Progress is the state of the recorded pod.
type Progress string

const (
	// None means that no pod is recorded.
	None Progress = "None"

	// Intended means that the pod is recorded, and not known to be created.
	Intended Progress = "Intended"

	// Running means that containers of the pod run, or may still start.
	Running Progress = "Running"

	// Stopping means that the pod is being deleted, and its containers may still run.
	Stopping Progress = "Stopping"

	// Ready means that the pod has created /pav/ready and its files were reported, and that containers of it may run.
	Ready Progress = "Ready"

	// Reporting means that all containers have ended, and the node agent has yet to report the files in /pav.
	Reporting Progress = "Reporting"

	// Succeeded means that all containers have succeeded, and the pod was not deleted before that; or that they have
	// ended after the pod was Ready.
	Succeeded Progress = "Succeeded"

	// Failed means that no container runs any more, and the pod did not succeed.
	Failed Progress = "Failed"

	// Vanished means that the pod was created, and is gone without an outcome.
	Vanished Progress = "Vanished"
)

// Pod returns the recorded pod, or nil if Kubernetes does not have it.
func (a Attempt) Pod() *corev1.Pod {
	if a.Ref == nil {
		return nil
	}
	pod := PodNamed(a.Pods, a.Ref.Namespace, a.Ref.Name)
	if pod == nil || a.Ref.UID != "" && pod.UID != a.Ref.UID {
		return nil
	}
	return pod
}

// PodNamed returns the pod of a namespace and name, or nil.
func PodNamed(pods []corev1.Pod, namespace, name string) *corev1.Pod {
	for i := range pods {
		if pods[i].Namespace == namespace && pods[i].Name == name {
			return &pods[i]
		}
	}
	return nil
}

// IsUnrecorded reports whether the pod exists, and the record does not have its UID yet.
func (a Attempt) IsUnrecorded() bool { return a.Ref != nil && a.Ref.UID == "" && a.Pod() != nil }

// HasBegun reports whether the pod was created, as far as the record and the cache know.
func (a Attempt) HasBegun() bool {
	p := a.Progress()
	return p != None && p != Intended
}

// Progress returns the state of the recorded pod.
func (a Attempt) Progress() Progress {
	pod := a.Pod()
	switch {
	case a.Ref == nil:
		return None
	case pod == nil && a.Ref.UID == "":
		return Intended
	case pod == nil:
		return Vanished
	}
	state := workflow.Judge(pod)
	if a.ByPhase && state == workflow.Succeeded {
		state = workflow.Observe(pod)
	}
	if a.NeedsResult && workflow.IsReady(pod) {
		switch {
		case state == workflow.Running:
			return Ready
		case state.IsOver():
			return Succeeded // whatever its containers did after that
		}
	}
	switch state {
	case workflow.Stopping:
		return Stopping
	case workflow.Succeeded:
		if a.NeedsResult && isUnreported(pod) {
			return Reporting
		}
		return Succeeded
	case workflow.Failed:
		// The text in /pav/error is worth a short wait.
		if isUnreported(pod) && pod.DeletionTimestamp == nil && HasEndedWithin(a.Now, pod, ResultDelay) {
			return Reporting
		}
		return Failed
	default:
		return Running
	}
}

// isUnreported reports whether the node agent has yet to report the files of a pod that is over.
func isUnreported(pod *corev1.Pod) bool {
	return !workflow.IsReported(pod) && workflow.Started(pod)
}
