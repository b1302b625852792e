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
	does    string // what it does; "change" or "read" if it is empty
	alone   bool   // and no other pod may do anything to it

	// unstaged says that no node may have it staged meanwhile, and online that nodes may begin and end to have it.
	unstaged, online bool
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
			if other.storage == u.storage && (other.changes != u.changes || other.alone && u.alone) {
				i.failf(2, "a container of pod %s starts to %s %s, which pod %s %ss", u.name, u.verb(), u.storage, other.name, other.verb())
			}
		}
		if u.unstaged {
			i.isUnstaged(pod, u)
		}
		i.uses = append(i.uses, u)
	}
}

// isReadUnstaged reports whether volumes of a driver are read only while no node has them staged.
func (i *Invariants) isReadUnstaged(driver string) bool {
	return reading.WhileStaged(world.Object[*pavv1.PavProvisioner](i.store, "", driver)) == pavv1.SnapshotWait
}

// isUnstaged checks that no node has a volume that is about to be read or expanded.
func (i *Invariants) isUnstaged(pod *corev1.Pod, u use) {
	for _, stage := range world.Objects[*pavv1.PavStage](i.store) {
		begun := stage.Status.Phase == pavv1.StageStaging || stage.Status.Phase == pavv1.StageStaged || stage.Status.Phase == pavv1.StageUnstaging
		if volumeOf(stage) == u.storage && begun {
			i.failf(2, "a container of pod %s starts to %s %s, which is staged on %s (%s)", pod.Name, u.verb(), u.storage, stage.Spec.NodeName, stage.Status.Phase)
		}
	}
}

// stagingIsAllowed checks that a volume is not staged while a pod reads or expands it, if its definition says so.
func (i *Invariants) stagingIsAllowed(pod *corev1.Pod, stage *pavv1.PavStage) {
	for _, u := range i.uses {
		if u.storage == volumeOf(stage) && u.unstaged {
			i.failf(2, "staging pod %s starts while pod %s %ss %s", pod.Name, u.name, u.verb(), u.storage)
		}
	}
}

// runsOnline reports whether a running pod expands or modifies a volume while nodes may stage and unstage it.
func (i *Invariants) runsOnline(pod types.UID) bool {
	return slices.ContainsFunc(i.uses, func(u use) bool { return u.pod == pod && u.online })
}

func volumeOf(stage *pavv1.PavStage) string {
	return "volume " + stage.Spec.Provisioner + "/" + stage.Spec.VolumeHandle
}

func (u use) verb() string {
	if u.does != "" {
		return u.does
	}
	if u.changes {
		return "change"
	}
	return "read"
}

// usesOf returns what a pod does to storage. A creation pod changes only what nobody else has made.
func (i *Invariants) usesOf(pod *corev1.Pod, script storage.Script, owner types.UID) []use {
	driver := pod.Annotations["simulation/driver"]
	volume := func(handle string, changes bool) use {
		return use{pod: pod.UID, name: pod.Name, storage: "volume " + driver + "/" + handle, changes: changes, unstaged: !changes && i.isReadUnstaged(driver)}
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
		u := volume(script.Handle, true)
		u.alone = true
		return []use{u}
	case storage.Expand:
		u := volume(script.Handle, true)
		u.alone = true
		if p := world.Object[*pavv1.PavProvisioner](i.store, "", driver); p != nil && p.Spec.VolumeExpansion != nil {
			u.unstaged, u.online = p.Spec.VolumeExpansion.IsOffline(), !p.Spec.VolumeExpansion.IsOffline()
		}
		return []use{u}
	case storage.Modify:
		u := volume(script.Handle, true)
		u.alone, u.online = true, true
		return []use{u}
	case storage.ExpandOnNode, storage.Unstage: // A volume is not unstaged before its node expansion pod has ended.
		u := volume(script.Handle, script.Verb == storage.ExpandOnNode)
		u.storage, u.alone, u.unstaged, u.does = u.storage+" on "+pod.Spec.NodeName, u.changes, false, script.Verb
		return []use{u}
	case storage.TakeSnapshot:
		uses := []use{snapshot(script.Handle, true)}
		if found := i.storage.FindSnapshot(driver, script.Handle); found == nil || found.By != owner { // Once it is cut, its pods do not read the volume any more.
			_, source := script.Source()
			uses = append(uses, volume(source, false))
		}
		return uses
	case storage.DeleteSnapshot:
		return []use{snapshot(script.Handle, true)}
	}
	return nil
}

// Ready records that a pod has created /pav/ready: it reads nothing any more.
func (i *Invariants) Ready(pod types.UID) {
	i.uses = slices.DeleteFunc(i.uses, func(u use) bool { return u.pod == pod && !u.changes })
}
