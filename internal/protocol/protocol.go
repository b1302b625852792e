package protocol

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations of the external provisioner protocol.
const (
	// StorageProvisioner on a claim is the provisioner that is to create its volume. The PersistentVolume controller
	// writes it, but a tenant can write it as well: use it only together with the StorageClass.
	StorageProvisioner = "volume.kubernetes.io/storage-provisioner"

	// BetaStorageProvisioner is the older name of StorageProvisioner.
	BetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"

	// SelectedNode on a claim is the node that the scheduler selected for its first consumer.
	SelectedNode = "volume.kubernetes.io/selected-node"

	// ProvisionedBy on a PersistentVolume is the provisioner that created it and will delete it.
	ProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

// Reserved is the prefix of StorageClass parameters for provisioners in general, which never reach a volume; FSType
// is the only one of them that PaV supports.
const (
	Reserved = "csi.storage.k8s.io/"
	FSType   = Reserved + "fstype"
)

// Reasons of events.
const (
	Provisioning               = "Provisioning"
	ProvisioningSucceeded      = "ProvisioningSucceeded"
	ProvisioningFailed         = "ProvisioningFailed"
	VolumeExpansionUnsupported = "VolumeExpansionUnsupported"
	VolumeResizing             = "Resizing"
	VolumeResizeSuccessful     = "VolumeResizeSuccessful"
	FileSystemResizeRequired   = "FileSystemResizeRequired"
	VolumeResizeFailed         = "VolumeResizeFailed"
	VolumeModify               = "VolumeModify"
	VolumeModifySuccessful     = "VolumeModifySuccessful"
	VolumeModifyFailed         = "VolumeModifyFailed"
	VolumeFailedDelete         = "VolumeFailedDelete"
	VolumeDeletionWaiting      = "VolumeDeletionWaiting"
	FailedMount                = "FailedMount"
	ForeignClaim               = "ForeignClaim"
)

// Provisioner returns the name of the provisioner that is to create the claim's volume, or "".
func Provisioner(claim *corev1.PersistentVolumeClaim) string {
	if name := claim.Annotations[StorageProvisioner]; name != "" {
		return name
	}
	return claim.Annotations[BetaStorageProvisioner]
}

// BindsLate reports whether the scheduler selects a node for the claims of a class before they are provisioned.
func BindsLate(class *storagev1.StorageClass) bool {
	mode := class.VolumeBindingMode
	return mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer
}

// AttributesClass returns the name of the VolumeAttributesClass that a claim names, or "".
func AttributesClass(claim *corev1.PersistentVolumeClaim) string {
	return orEmpty(claim.Spec.VolumeAttributesClassName)
}

// CurrentAttributesClass returns the name of the VolumeAttributesClass whose attributes a claim shows, or "".
func CurrentAttributesClass(claim *corev1.PersistentVolumeClaim) string {
	return orEmpty(claim.Status.CurrentVolumeAttributesClassName)
}

func orEmpty(name *string) string {
	if name == nil {
		return ""
	}
	return *name
}

// ClassName returns the name of the claim's StorageClass, or "".
func ClassName(claim *corev1.PersistentVolumeClaim) string {
	// Kubernetes gives precedence to the annotation, which old claims have.
	if name, ok := claim.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	return orEmpty(claim.Spec.StorageClassName)
}

// Unbound reports whether the claim waits for a volume.
//
// Protocol: "The provisioner MUST check that the claim is unbound, i.e. its claim.Spec.VolumeName is empty."
func Unbound(claim *corev1.PersistentVolumeClaim) bool {
	phase := claim.Status.Phase
	return claim.Spec.VolumeName == "" && phase != corev1.ClaimBound && phase != corev1.ClaimLost
}

// VolumeName returns the name of the PersistentVolume, and of the PavVolume, of a claim.
func VolumeName(claim types.UID) string {
	return fmt.Sprintf("pvc-%s", claim)
}

// UsesOneOf reports whether a pod uses one of the claims.
func UsesOneOf(pod *corev1.Pod, claims []types.NamespacedName) bool {
	return slices.ContainsFunc(claims, func(claim types.NamespacedName) bool {
		return pod.Namespace == claim.Namespace && Uses(pod, claim.Name)
	})
}

// Uses reports whether a pod uses the claim of the name in its namespace. No pod uses a claim without a name.
func Uses(pod *corev1.Pod, claim string) bool {
	return claim != "" && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return ClaimOf(pod, &v) == claim })
}

// ClaimOf returns the name of the claim of a pod's volume, or "" if the volume has none.
func ClaimOf(pod *corev1.Pod, volume *corev1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return pod.Name + "-" + volume.Name
	}
	return ""
}

// Mounts reports whether kubelet mounts the volume of a claim for a pod: a container mounts it in the claim's volume mode, and if
// the pod's volume is ephemeral, the claim was made for the pod.
func Mounts(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	block := claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		if ClaimOf(pod, &v) != claim.Name || v.Ephemeral != nil && !metav1.IsControlledBy(claim, pod) {
			return false
		}
		return slices.ContainsFunc(containers, func(c corev1.Container) bool {
			if block {
				return slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == v.Name })
			}
			return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
		})
	})
}

// IsRegistered reports whether a driver is registered on a node.
func IsRegistered(node *storagev1.CSINode, driver string) bool {
	return slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// IsInfeasibleOnNode reports whether kubelet has said that the expansion of a claim's volume is infeasible on a node.
func IsInfeasibleOnNode(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimNodeResizeInfeasible
}
