// Package invariants says what must be true in the simulated world at all times, and at its end. It watches the
// store and the storage, and changes nothing.
package invariants

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/protocol"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Invariants are what is watched in one world.
type Invariants struct {
	store   *world.Store
	storage *storage.System

	// IsAgent says whether a writer is one of PaV's controller agents.
	IsAgent func(by string) bool

	failed  error
	running map[types.UID]types.UID // the pod with effect of each PavVolume
	owners  map[types.UID]types.UID // the PavVolume of each pod with effect
}

// Watch begins to watch a world.
func Watch(store *world.Store, system *storage.System, isAgent func(by string) bool) *Invariants {
	i := &Invariants{store: store, storage: system, IsAgent: isAgent, running: map[types.UID]types.UID{}, owners: map[types.UID]types.UID{}}
	store.Hook(i.write)
	system.Deleting = i.deleting
	return i
}

// Failed returns what was violated first.
func (i *Invariants) Failed() error { return i.failed }

func (i *Invariants) failf(number int, format string, arguments ...any) {
	if i.failed == nil {
		i.failed = fmt.Errorf("invariant %d: %s", number, fmt.Sprintf(format, arguments...))
	}
}

// write sees every write of the store.
func (i *Invariants) write(by string, before, after client.Object) error {
	if !i.IsAgent(by) || before != nil {
		return nil
	}
	switch o := after.(type) {
	case *corev1.Pod:
		i.podIsMade(o)
	case *corev1.PersistentVolume:
		i.pvIsMade(o)
	}
	return nil
}

// podIsMade checks that a pod which deletes storage is made for storage that nobody has, and that a volume has
// one pod at a time.
func (i *Invariants) podIsMade(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "PavVolume" {
		return
	}
	volume := world.Object[*pavv1.PavVolume](i.store, "", owner.Name)
	if volume == nil || volume.UID != owner.UID {
		return // it goes with its owner before it has an effect, or is watched then
	}
	for _, other := range world.Objects[*corev1.Pod](i.store) {
		if metav1.IsControlledBy(other, volume) && !isOver(other) {
			i.failf(2, "pod %s is made while %s of the same PavVolume is not over", pod.Name, other.Name)
		}
	}
	if pod.Labels[pavv1.WorkflowLabel] != pavv1.WorkflowDeletion {
		return
	}
	script, err := storage.Parse(pod.Spec.Containers[0].Args)
	if err != nil {
		i.failf(1, "pod %s: %v", pod.Name, err)
		return
	}
	if holder := i.holder(volume, script.Handle); holder != "" {
		i.failf(1, "deletion pod %s of PavVolume %s is made for the handle %q, which %s has", pod.Name, volume.Name, script.Handle, holder)
	}
}

// holder returns who has the storage of a handle besides a PavVolume that wants to delete it.
func (i *Invariants) holder(volume *pavv1.PavVolume, handle string) string {
	driver := volume.Spec.Provisioner
	for _, pv := range world.Objects[*corev1.PersistentVolume](i.store) {
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != driver || pv.Spec.CSI.VolumeHandle != handle {
			continue
		}
		if own := pv.Name == volume.Name; !own || !isReleased(pv) {
			return fmt.Sprintf("PersistentVolume %s (%s)", pv.Name, pv.Status.Phase)
		}
	}
	for _, stage := range world.Objects[*pavv1.PavStage](i.store) {
		if stage.Spec.Provisioner == driver && stage.Spec.VolumeHandle == handle && stage.Status.Phase == pavv1.StageStaged {
			return "PavStage " + stage.Name
		}
	}
	for _, other := range world.Objects[*pavv1.PavVolume](i.store) {
		if other.UID != volume.UID && other.Spec.Provisioner == driver && other.Status.Handle == handle && other.Status.Phase != pavv1.VolumePending && other.Status.Phase != "" {
			return fmt.Sprintf("PavVolume %s (%s)", other.Name, other.Status.Phase)
		}
	}
	return ""
}

func isReleased(pv *corev1.PersistentVolume) bool {
	return pv.Status.Phase == corev1.VolumeReleased || pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound
}

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
}

// pvIsMade checks that a PersistentVolume is made for storage that is there, and that is not being deleted.
func (i *Invariants) pvIsMade(pv *corev1.PersistentVolume) {
	volume := world.Object[*pavv1.PavVolume](i.store, "", pv.Name)
	if volume == nil {
		i.failf(4, "PersistentVolume %s is made, and no PavVolume is there", pv.Name)
		return
	}
	handle := pv.Spec.CSI.VolumeHandle
	if pv.Spec.StorageClassName != "light" && i.storage.Find(pv.Spec.CSI.Driver, handle) == nil && makes(pv.Spec.CSI.Driver) {
		i.failf(1, "PersistentVolume %s is made for the handle %q, of which there is no storage", pv.Name, handle)
	}
	for _, pod := range world.Objects[*corev1.Pod](i.store) {
		if metav1.IsControlledBy(pod, volume) && pod.Labels[pavv1.WorkflowLabel] == pavv1.WorkflowDeletion && !isOver(pod) {
			i.failf(1, "PersistentVolume %s is made while deletion pod %s runs", pv.Name, pod.Name)
		}
	}
}

// makes reports whether a driver has creation pods.
func makes(driver string) bool { return !strings.HasPrefix(driver, "light") }

// Starting hears of each container before it starts.
func (i *Invariants) Starting(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "PavVolume" {
		return
	}
	if other, runs := i.running[owner.UID]; runs && other != pod.UID {
		i.failf(2, "a container of pod %s starts while another pod of PavVolume %s runs", pod.Name, owner.Name)
	}
	i.running[owner.UID], i.owners[pod.UID] = pod.UID, owner.UID
}

// Ended hears of the end of each container.
func (i *Invariants) Ended(pod types.UID) {
	delete(i.running, i.owners[pod])
	delete(i.owners, pod)
}

// deleting sees every volume before it is deleted.
func (i *Invariants) deleting(driver string, v *storage.Volume, by types.UID) {
	for _, pv := range world.Objects[*corev1.PersistentVolume](i.store) {
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != driver || pv.Spec.CSI.VolumeHandle != v.Handle {
			continue
		}
		if pv.Annotations[protocol.ProvisionedBy] == driver && !isReleased(pv) {
			i.failf(1, "the storage of the handle %q is deleted, which PersistentVolume %s (%s) has", v.Handle, pv.Name, pv.Status.Phase)
		}
	}
	for _, other := range world.Objects[*pavv1.PavVolume](i.store) {
		if other.UID == v.By && other.UID != by && other.Spec.Provisioner == driver && other.Status.Handle == v.Handle && other.Status.Phase != "" && other.Status.Phase != pavv1.VolumePending {
			i.failf(1, "the storage of the handle %q, which PavVolume %s (%s) made, is deleted for another", v.Handle, other.Name, other.Status.Phase)
		}
	}
	for _, stage := range world.Objects[*pavv1.PavStage](i.store) {
		if stage.Spec.Provisioner == driver && stage.Spec.VolumeHandle == v.Handle && stage.Status.Phase == pavv1.StageStaged {
			i.failf(3, "the storage of the handle %q is deleted while it is staged on %s", v.Handle, stage.Spec.NodeName)
		}
	}
}
