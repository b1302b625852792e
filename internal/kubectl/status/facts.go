package status

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// Facts is all that was found out about one volume. What is nil does not exist, or may not be read: then
// Hidden says so.
type Facts struct {
	// Now is when it was found out.
	Now time.Time

	// Subject is what the user asked about, for messages.
	Subject Ref

	Claim *corev1.PersistentVolumeClaim
	Class *storagev1.StorageClass

	// DefaultClass is the name of the default StorageClass; only looked up where the claim names none.
	DefaultClass string

	// Provisioner is the PavProvisioner; Driver the CSIDriver of its name, only looked up if there is none.
	Provisioner *pavv1.PavProvisioner
	Driver      *storagev1.CSIDriver

	Volume *pavv1.PavVolume
	PV     *corev1.PersistentVolume
	Stages []pavv1.PavStage

	// Pods are workflow pods, and Clients the pods that use the claim; oldest first.
	Pods, Clients []corev1.Pod

	// Gone are workflow pods that were removed when they had succeeded, and of which only events are left.
	Gone []GonePod

	// Nodes are those of stages and clients, by name.
	Nodes map[string]*Node

	// Events are those of all of these, in no order.
	Events []corev1.Event

	// Hidden names, in words, what the user may not read. Sorted.
	Hidden []string
}

// GonePod is a workflow pod that was removed.
type GonePod struct {
	Name, Workflow string

	// Number is that of the pod among all of its volume.
	Number int32

	// Scheduled and Began are when it was given to a node, and when its first container began.
	Scheduled, Began metav1.Time
}

// Node is what was found out about a node.
type Node struct {
	// Object is nil if the node does not exist, or may not be read.
	Object *corev1.Node

	// Gone says that it does not exist.
	Gone bool

	// Registration is the node's CSINode, or nil.
	Registration *storagev1.CSINode

	// Agent is the node agent's pod; AgentMissing says that there is none.
	Agent        *corev1.Pod
	AgentMissing bool
}

// hides reports whether something of this kind may not be read.
func (f *Facts) hides(what string) bool { return slices.Contains(f.Hidden, what) }

// claimRef returns namespace and name of the claim, also of one that is gone.
func (f *Facts) claimRef() (namespace, name string) {
	switch {
	case f.Claim != nil:
		return f.Claim.Namespace, f.Claim.Name
	case f.Volume != nil:
		return f.Volume.Spec.ClaimRef.Namespace, f.Volume.Spec.ClaimRef.Name
	case f.PV != nil && f.PV.Spec.ClaimRef != nil:
		return f.PV.Spec.ClaimRef.Namespace, f.PV.Spec.ClaimRef.Name
	case len(f.Stages) > 0:
		ref := f.Stages[0].Spec.ClaimRef
		return ref.Namespace, ref.Name
	}
	return "", ""
}

// volumeName returns the name of the PersistentVolume, which may not exist yet, or "".
func (f *Facts) volumeName() string {
	switch {
	case f.PV != nil:
		return f.PV.Name
	case f.Volume != nil:
		return f.Volume.Name
	case f.Claim != nil:
		return VolumeName(f.Claim)
	case len(f.Stages) > 0:
		return f.Stages[0].Spec.VolumeName
	}
	return ""
}

// provisionerName returns the name of the PavProvisioner that the volume has, or is to have, or "".
func (f *Facts) provisionerName() string {
	switch {
	case f.PV != nil && f.PV.Spec.CSI != nil:
		return f.PV.Spec.CSI.Driver
	case f.Volume != nil:
		return f.Volume.Spec.Provisioner
	case len(f.Stages) > 0:
		return f.Stages[0].Spec.Provisioner
	case f.Class != nil:
		return f.Class.Provisioner
	case f.Claim != nil:
		return protocol.Provisioner(f.Claim)
	}
	return ""
}

// isForeign reports whether the volume is known to be no business of PaV's.
func (f *Facts) isForeign() bool {
	if f.Provisioner != nil || f.Volume != nil || len(f.Stages) > 0 {
		return false
	}
	if f.PV != nil && f.PV.Spec.CSI == nil {
		return true
	}
	return f.Driver != nil && f.Driver.Labels[pavv1.ProvisionerLabel] == ""
}

// pod returns a workflow pod, or nil.
func (f *Facts) pod(ref *pavv1.PodReference) *corev1.Pod {
	if ref == nil {
		return nil
	}
	return f.podNamed(ref.Namespace, ref.Name)
}

func (f *Facts) podNamed(namespace, name string) *corev1.Pod {
	for i := range f.Pods {
		if pod := &f.Pods[i]; pod.Namespace == namespace && pod.Name == name {
			return pod
		}
	}
	return nil
}

// clientsOn returns the client pods on a node that are not over.
func (f *Facts) clientsOn(node string) []*corev1.Pod {
	var found []*corev1.Pod
	for i := range f.Clients {
		if pod := &f.Clients[i]; pod.Spec.NodeName == node && !isOver(pod) {
			found = append(found, pod)
		}
	}
	return found
}

// stagesOn returns the stages on a node.
func (f *Facts) stagesOn(node string) []*pavv1.PavStage {
	var found []*pavv1.PavStage
	for i := range f.Stages {
		if s := &f.Stages[i]; s.Spec.NodeName == node {
			found = append(found, s)
		}
	}
	return found
}

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ClaimsOf returns the names of the claims that a pod uses, in the order of its volumes.
func ClaimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		switch {
		case volume.PersistentVolumeClaim != nil:
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			names = append(names, pod.Name+"-"+volume.Name)
		}
	}
	return names
}
