package kubernetes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/albertofaria/pav/test/simulation/world"
)

// Attacher creates VolumeAttachments for volumes whose CSIDriver object does not exist: without that object, Kubernetes
// assumes that the driver requires attachment. It is simpler than the real attach/detach controller: the kubelets do
// not wait for it, and no volume is ever attached.
type Attacher struct{ World *world.World }

// Choices implements world.Actor.
func (a *Attacher) Choices(add func(world.Choice)) {
	wanted := map[string]bool{}
	for _, pod := range world.Objects[*corev1.Pod](a.World.Store) {
		if pod.Spec.NodeName == "" || isOver(pod) {
			continue
		}
		for _, pv := range a.volumesOf(pod) {
			attachment := &storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: "attach-" + pv.Name + "-" + pod.Spec.NodeName},
				Spec: storagev1.VolumeAttachmentSpec{
					Attacher: pv.Spec.CSI.Driver, NodeName: pod.Spec.NodeName, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
				},
			}
			wanted[attachment.Name] = true
			if world.Object[*storagev1.VolumeAttachment](a.World.Store, "", attachment.Name) == nil {
				add(world.Choice{What: fmt.Sprintf("kubernetes wants %s attached to %s", pv.Name, pod.Spec.NodeName), Do: func() { _ = a.World.Store.Create(by, attachment) }})
			}
		}
	}
	for _, attachment := range world.Objects[*storagev1.VolumeAttachment](a.World.Store) {
		if !wanted[attachment.Name] {
			add(world.Choice{What: "kubernetes detaches " + attachment.Name, Do: func() { _ = a.World.Store.Delete(by, a.World.Store.KeyOf(attachment), nil, nil) }})
		}
	}
}

// volumesOf returns the volumes of a pod that Kubernetes wants to attach.
func (a *Attacher) volumesOf(pod *corev1.Pod) []*corev1.PersistentVolume {
	var pvs []*corev1.PersistentVolume
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim := world.Object[*corev1.PersistentVolumeClaim](a.World.Store, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
		if claim == nil || claim.Spec.VolumeName == "" {
			continue
		}
		pv := world.Object[*corev1.PersistentVolume](a.World.Store, "", claim.Spec.VolumeName)
		if pv != nil && pv.Spec.CSI != nil && world.Object[*storagev1.CSIDriver](a.World.Store, "", pv.Spec.CSI.Driver) == nil {
			pvs = append(pvs, pv)
		}
	}
	return pvs
}
