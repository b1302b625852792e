package podplan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// Requested has the recorded objects of the request for a volume.
type Requested struct {
	Claim corev1.PersistentVolumeClaim
	Class storagev1.StorageClass
}

// RequestedOf returns the recorded objects of the request for a volume.
func RequestedOf(volume *pavv1.PavVolume) (Requested, error) {
	s := Requested{}
	if err := json.Unmarshal(volume.Spec.Claim.Raw, &s.Claim); err != nil {
		return s, fmt.Errorf("spec.claim of PavVolume %q: %w", volume.Name, err)
	}
	if err := json.Unmarshal(volume.Spec.StorageClass.Raw, &s.Class); err != nil {
		return s, fmt.Errorf("spec.storageClass of PavVolume %q: %w", volume.Name, err)
	}
	return s, nil
}

// Parameters splits a StorageClass's parameters into those that reach the volume and the file
// system type.
//
// Protocol: a provisioner that "encounters unknown parameters … SHOULD report an error and it MUST NOT provision a
// volume".
// The definition validates PaV's own parameters; reserved ones never reach a volume.
func Parameters(class *storagev1.StorageClass) (attributes map[string]string, fsType string, err error) {
	attributes = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(class.Parameters)) {
		value := class.Parameters[key]
		switch {
		case key == protocol.FSType:
			fsType = value
		case strings.HasPrefix(key, protocol.Reserved):
			return nil, "", fmt.Errorf("StorageClass %q: parameters[%s]: PaV does not support this reserved parameter", class.Name, key)
		default:
			attributes[key] = value
		}
	}
	return attributes, fsType, nil
}

// PersistentVolume returns the PersistentVolume of a volume whose handle and capacity are recorded.
func PersistentVolume(volume *pavv1.PavVolume) (*corev1.PersistentVolume, error) {
	s, err := RequestedOf(volume)
	if err != nil {
		return nil, err
	}
	attributes, fsType, err := Parameters(&s.Class)
	if err != nil {
		return nil, err
	}
	mutable, err := AttributesAtCreation(volume)
	if err != nil {
		return nil, err
	}
	ref := volume.Spec.ClaimRef
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: volume.Name,
			// Protocol: "pv.Annotations["pv.kubernetes.io/provisioned-by"] MUST be set to name of the external
			// provisioner".
			Annotations: map[string]string{protocol.ProvisionedBy: volume.Spec.Provisioner},
			Labels:      workflow.VolumeLabels(volume.Spec.Provisioner, volume.Status.Handle),
			// With Retain, it is removed once it is recorded that the PersistentVolume exists. One that is gone before that
			// would leave a record that says that nobody has used the storage.
			Finalizers: []string{pavv1.PVFinalizer},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *volume.Status.Capacity},
			AccessModes:                   s.Claim.Spec.AccessModes,
			VolumeMode:                    s.Claim.Spec.VolumeMode,
			MountOptions:                  s.Class.MountOptions,
			StorageClassName:              s.Class.Name,
			NodeAffinity:                  topology.NodeAffinity(volume.Status.AccessibleTopology),
			PersistentVolumeReclaimPolicy: volume.Spec.ReclaimPolicy,
			// Protocol: "pv.Spec.ClaimRef MUST point to the claim that led to its creation (including the claim UID)".
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:           volume.Spec.Provisioner,
				VolumeHandle:     volume.Status.Handle,
				FSType:           fsType,
				VolumeAttributes: attributes,
			}},
		},
	}
	if mutable.Class != "" {
		pv.Spec.VolumeAttributesClassName = &mutable.Class
	}
	return pv, nil
}
