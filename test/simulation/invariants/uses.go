package invariants

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// use is what a pod with a running container does to storage.
type use struct {
	pod     types.UID
	name    string // of the pod
	storage string // such as "volume plain/h"
	changes bool   // and does not only read it
}

// use checks that storage is not read while a pod changes or deletes it, or while it is staged and must not be, and records
// what a pod is about to do.
func (i *Invariants) use(pod *corev1.Pod, owner types.UID) {
	script, err := storage.Parse(pod.Spec.Containers[0].Args)
	if err != nil {
		return // the node reports it
	}
	for _, u := range i.usesOf(pod, script, owner) {
		for _, other := range i.uses {
			if other.storage == u.storage && other.changes != u.changes {
				i.failf(2, "a container of pod %s starts to %s %s, which pod %s %ss", u.name, u.verb(), u.storage, other.name, other.verb())
			}
		}
		if !u.changes {
			i.readIsUnstaged(pod, u)
		}
		i.uses = append(i.uses, u)
	}
}

// isReadUnstaged reports whether volumes of a driver are read only while no node has them staged.
func (i *Invariants) isReadUnstaged(driver string) bool {
	return reading.WhileStaged(world.Object[*pavv1.PavProvisioner](i.store, "", driver)) == pavv1.SnapshotWait
}

// readIsUnstaged checks that no node has a volume that is about to be read, if its definition says so.
func (i *Invariants) readIsUnstaged(pod *corev1.Pod, u use) {
	for _, stage := range world.Objects[*pavv1.PavStage](i.store) {
		begun := stage.Status.Phase == pavv1.StageStaging || stage.Status.Phase == pavv1.StageStaged || stage.Status.Phase == pavv1.StageUnstaging
		if volumeOf(stage) == u.storage && begun && i.isReadUnstaged(stage.Spec.Provisioner) {
			i.failf(2, "a container of pod %s starts to read %s, which is staged on %s (%s)", pod.Name, u.storage, stage.Spec.NodeName, stage.Status.Phase)
		}
	}
}

// stagingIsAllowed checks that a volume is not staged while a pod reads it, if its definition says so.
func (i *Invariants) stagingIsAllowed(pod *corev1.Pod, stage *pavv1.PavStage) {
	for _, u := range i.uses {
		if u.storage == volumeOf(stage) && !u.changes && i.isReadUnstaged(stage.Spec.Provisioner) {
			i.failf(2, "staging pod %s starts while pod %s reads %s", pod.Name, u.name, u.storage)
		}
	}
}

func volumeOf(stage *pavv1.PavStage) string {
	return "volume " + stage.Spec.Provisioner + "/" + stage.Spec.VolumeHandle
}

func (u use) verb() string {
	if u.changes {
		return "change"
	}
	return "read"
}

// usesOf returns what a pod does to storage. A creation pod changes only what nobody else has made.
func (i *Invariants) usesOf(pod *corev1.Pod, script storage.Script, owner types.UID) []use {
	driver := pod.Annotations["simulation/driver"]
	volume := func(handle string, changes bool) use {
		return use{pod: pod.UID, name: pod.Name, storage: "volume " + driver + "/" + handle, changes: changes}
	}
	snapshot := func(handle string, changes bool) use {
		return use{pod: pod.UID, name: pod.Name, storage: "snapshot " + driver + "/" + handle, changes: changes}
	}
	switch script.Verb {
	case storage.Create:
		var uses []use
		switch kind, source := script.Source(); kind {
		case storage.OfVolume:
			uses = append(uses, volume(source, false))
		case storage.OfSnapshot:
			uses = append(uses, snapshot(source, false))
		}
		if found := i.storage.Find(driver, script.Handle); found == nil || found.By == owner {
			uses = append(uses, volume(script.Handle, true))
		}
		return uses
	case storage.Delete:
		return []use{volume(script.Handle, true)}
	case storage.TakeSnapshot:
		_, source := script.Source()
		return []use{volume(source, false), snapshot(script.Handle, true)}
	case storage.DeleteSnapshot:
		return []use{snapshot(script.Handle, true)}
	}
	return nil
}

// Ready records that a pod has created /pav/ready: it reads nothing any more.
func (i *Invariants) Ready(pod types.UID) {
	i.uses = slices.DeleteFunc(i.uses, func(u use) bool { return u.pod == pod && !u.changes })
}
