package podplan

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// StageNames returns the names that the PavStage of a volume on a node can have: one for volumes that many nodes may
// have, and one for volumes that only one node at a time may have. The latter is the same on all nodes, so that the
// API server lets only one of them create it.
func StageNames(driver, handle, node string) (shared, exclusive string) {
	return "stage-" + workflow.Hash(driver, handle, node), "stage-" + workflow.Hash(driver, handle)
}

// ClientStageName returns the name of the PavStage for the client pod of a target.
func ClientStageName(driver, handle, node, target string) string {
	return "stage-" + workflow.Hash(driver, handle, node, target)
}

// StageName returns the name of the PavStage of a bound volume on a node.
func StageName(volume *corev1.PersistentVolume, node string) string {
	shared, exclusive := StageNames(volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle, node)
	if IsExclusive(volume.Spec.AccessModes) {
		return exclusive
	}
	return shared
}

// IsExclusive reports whether only one node at a time may have a volume. With attachRequired: false, nothing else in
// Kubernetes ensures that.
func IsExclusive(modes []corev1.PersistentVolumeAccessMode) bool {
	return len(modes) > 0 && !slices.ContainsFunc(modes, func(mode corev1.PersistentVolumeAccessMode) bool {
		return mode != corev1.ReadWriteOnce && mode != corev1.ReadWriteOncePod
	})
}

// VolumeMode returns the volume's mode.
func VolumeMode(volume *corev1.PersistentVolume) corev1.PersistentVolumeMode {
	return modeOf(volume.Spec.VolumeMode)
}

func modeOf(mode *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if mode == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *mode
}

// IsReadOnly reports whether a volume is staged read-only, regardless of its client.
func IsReadOnly(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return volume.Spec.CSI.ReadOnly || slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany})
}

// StageSpec returns the spec of the PavStage of a volume that is bound to a claim. The caller sets Scope, Volume and
// Claim and, for the stage of a client pod, Client.
func StageSpec(volume *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim, node string) pavv1.PavStageSpec {
	return pavv1.PavStageSpec{
		Provisioner:  volume.Spec.CSI.Driver,
		VolumeName:   volume.Name,
		VolumeHandle: volume.Spec.CSI.VolumeHandle,
		NodeName:     node,
		ClaimRef:     pavv1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		VolumeMode:   VolumeMode(volume),
		ReadOnly:     IsReadOnly(volume, claim),
		Exclusive:    IsExclusive(volume.Spec.AccessModes),
	}
}

// stagePodPolicy returns the PodPolicy of a pod of a PavStage.
func stagePodPolicy(stage *pavv1.PavStage, kind string, attempt int32) workflow.PodPolicy {
	spec := &stage.Spec
	number := strconv.Itoa(int(attempt))
	return workflow.PodPolicy{
		Workflow: kind,
		Name:     workflow.Name(kind, string(stage.UID), number),
		Owner: metav1.OwnerReference{
			APIVersion: pavv1.GroupVersion.String(), Kind: "PavStage", Name: stage.Name, UID: stage.UID, Controller: new(true),
		},
		Labels: map[string]string{
			pavv1.ProvisionerLabel: spec.Provisioner,
			pavv1.VolumeLabel:      workflow.Hash(spec.VolumeName),
			pavv1.NodeLabel:        workflow.Hash(spec.NodeName),
			pavv1.StageLabel:       stage.Name,
		},
		Annotations: map[string]string{
			pavv1.VolumeAnnotation:  spec.VolumeName,
			pavv1.HandleAnnotation:  spec.VolumeHandle,
			pavv1.NodeAnnotation:    spec.NodeName,
			pavv1.AttemptAnnotation: number,
		},
		Node: spec.NodeName,
	}
}
