package reconcile

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/protocol"
)

// IsStatic reports whether an administrator, and not its driver, wrote a PersistentVolume.
func IsStatic(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && pv.Annotations[protocol.ProvisionedBy] != pv.Spec.CSI.Driver
}

// IsStaticInUse reports whether an administrator wrote a PersistentVolume, and Kubernetes has bound a claim to it.
func IsStaticInUse(pv *corev1.PersistentVolume) bool {
	return IsStatic(pv) && pv.DeletionTimestamp == nil && pv.Status.Phase == corev1.VolumeBound && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != ""
}
