package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// hashLength is the number of hexadecimal digits of Hash: 80 bits, so that no two volumes of a cluster have the same
// hash by chance.
const hashLength = 20

// Hash returns a short name for the parts, valid in labels and in names of objects. Different lists of parts have
// different hashes.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil))[:hashLength]
}

// VolumeLabels returns the labels of a PersistentVolume with a driver and handle.
func VolumeLabels(driver, handle string) map[string]string {
	return map[string]string{pavv1.ProvisionerLabel: driver, pavv1.StorageLabel: Hash(driver, handle)}
}

// Name returns the name of the pod of a workflow, deterministic in the parts.
func Name(workflow string, parts ...string) string {
	return workflow + "-" + Hash(parts...)
}

// Attempt returns the number of a workflow pod, or 0 if it has none.
func Attempt(pod *corev1.Pod) int32 {
	number, err := strconv.ParseInt(pod.Annotations[pavv1.AttemptAnnotation], 10, 32)
	if err != nil {
		return 0
	}
	return int32(number)
}
