package status

import (
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// Facts is everything that was found out about one volume. A nil object does not exist, or the user may not read it;
// then Hidden says so.
type Facts struct {
	// Now is the time at which it was found out.
	Now time.Time

	// Subject is what the user asked about, for messages.
	Subject Ref

	Claim *corev1.PersistentVolumeClaim
	Class *storagev1.StorageClass

	// DefaultClass is the name of the default StorageClass. It is only looked up if the claim has no class.
	DefaultClass string

	// Provisioner is the PavProvisioner. Driver is the CSIDriver with that name, only looked up if the PavProvisioner
	// does not exist.
	Provisioner *pavv1.PavProvisioner
	Driver      *storagev1.CSIDriver

	Volume *pavv1.PavVolume
	PV     *corev1.PersistentVolume
	Stages []pavv1.PavStage

	// Snapshot are the objects of the snapshot that the user asked about; nil if it was a volume.
	Snapshot *SnapshotFacts

	// Bucket are the objects of the bucket, or of the access to one, that the user asked about; nil if it was something else.
	Bucket *BucketFacts

	// Snapshots are the PavSnapshots of the volume, or of the snapshot; oldest first.
	Snapshots []pavv1.PavSnapshot

	// Source is what the claim names as its source, a snapshot or another claim of its namespace; nil if PaV has begun with it.
	Source *podplan.ClaimSource

	// Copies are the PavVolumes that are created from the volume or the snapshot, or depend on it. They are only looked up if something
	// waits for them.
	Copies []pavv1.PavVolume

	// Unfinished are the VolumeSnapshots of a claim that hold its deletion.
	Unfinished []snapshotv1.VolumeSnapshot

	// Pods are workflow pods, and Clients the pods that use the claim, or the Secrets of the access to a bucket; oldest first.
	Pods, Clients []corev1.Pod

	// Gone are workflow pods that were removed after they had succeeded, so only their events are left.
	Gone []GonePod

	// Similar is the name of the PavProvisioner whose name is most like the one that does not exist; "" if there is none.
	Similar string

	// AgentNamespace is the namespace of PaV's agents.
	AgentNamespace string

	// Nodes are the nodes of stages and clients, by name.
	Nodes map[string]*Node

	// Events are the events of all these objects, in no particular order.
	Events []corev1.Event

	// Hidden names, in words, what the user may not read. Sorted.
	Hidden []string
}

// GonePod is a workflow pod that was removed.
type GonePod struct {
	Name, Workflow string

	// Number is the number of the pod among all pods of its volume, snapshot, bucket or access.
	Number int32

	// Scheduled and Began are the times at which it was scheduled, and at which its first container began.
	Scheduled, Began metav1.Time
}

// Node is everything that was found out about a node.
type Node struct {
	// Object is nil if the node does not exist, or the user may not read it.
	Object *corev1.Node

	// Gone means that it does not exist.
	Gone bool

	// Registration is the node's CSINode, or nil.
	Registration *storagev1.CSINode

	// Agent is the node agent's pod. AgentMissing means that there is none.
	Agent        *corev1.Pod
	AgentMissing bool
}

// hides reports whether the user may not read objects of this kind.
func (f *Facts) hides(what string) bool { return slices.Contains(f.Hidden, what) }

// claimRef returns namespace and name of the claim, even if it is gone.
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
	case f.Snapshot != nil && f.Snapshot.claim() != "":
		return f.Snapshot.Object.Namespace, f.Snapshot.claim()
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
	return f.Snapshot.volumeName()
}

// provisionerName returns the name of the volume's PavProvisioner, or "". The volume may not exist yet.
func (f *Facts) provisionerName() string {
	switch {
	case f.Bucket != nil:
		return f.bucketProvisioner()
	case f.Snapshot.driver() != "":
		return f.Snapshot.driver()
	case f.PV != nil && f.PV.Spec.CSI != nil:
		return f.PV.Spec.CSI.Driver
	case f.Volume != nil:
		return f.Volume.Spec.Provisioner
	case len(f.Stages) > 0:
		return f.Stages[0].Spec.Provisioner
	case f.Class != nil:
		return f.Class.Provisioner
	case f.Snapshot != nil && f.Snapshot.Class != nil:
		return f.Snapshot.Class.Driver
	case f.Claim != nil:
		return protocol.Provisioner(f.Claim)
	}
	return ""
}

// isForeign reports whether the volume certainly belongs to another driver.
func (f *Facts) isForeign() bool {
	if f.Provisioner != nil || f.Volume != nil || len(f.Stages) > 0 || len(f.Snapshots) > 0 || f.Bucket != nil {
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

// clientsOn returns the client pods on a node that have not ended.
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
		if name := protocol.ClaimOf(pod, &pod.Spec.Volumes[i]); name != "" {
			names = append(names, name)
		}
	}
	return names
}
