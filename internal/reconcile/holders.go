package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Storage is the key of storage. Handles are unique only within a driver, and the name of an object that refers to
// storage does not identify the storage.
func Storage(driver, handle string) string {
	return driver + "/" + handle
}

func storageOfPV(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI == nil {
		return ""
	}
	return Storage(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
}

// storagesOfVolume returns the storage that a PavVolume has or will have, or that of its default handle, which no
// other volume may use before its creation pod has ended; and the storage of its former handle, if it has one.
func storagesOfVolume(v *pavv1.PavVolume) []string {
	handle := v.Name
	switch {
	case v.Spec.Static && v.Status.Handle == "":
		return nil
	case v.Status.Handle != "":
		handle = v.Status.Handle
	case v.Status.Plan != nil && v.Status.Plan.Handle != "":
		handle = v.Status.Plan.Handle
	}
	storages := []string{Storage(v.Spec.Provisioner, handle)}
	if former := v.Status.FormerHandle; former != "" && former != handle {
		storages = append(storages, Storage(v.Spec.Provisioner, former))
	}
	return storages
}

func conflictOfVolume(v *pavv1.PavVolume) string {
	if v.Status.Conflict == nil {
		return ""
	}
	return Storage(v.Spec.Provisioner, v.Status.Conflict.Handle)
}

func storageOfStage(s *pavv1.PavStage) string {
	return Storage(s.Spec.Provisioner, s.Spec.VolumeHandle)
}

// StorageOfSnapshot returns the key of the snapshot that a PavSnapshot has or will have, or that of its default handle. Handles of
// snapshots and of volumes may be the same.
func StorageOfSnapshot(s *pavv1.PavSnapshot) string {
	return Storage(s.Spec.Provisioner, cmp.Or(s.Status.Handle, s.Status.PlannedHandle, s.Spec.SnapshotHandle, s.Name))
}

// StagesOf returns the PavStages of the storage with a driver and handle, according to the cache. Several PersistentVolumes may be of it.
func StagesOf(ctx context.Context, cache client.Reader, driver, handle string) ([]pavv1.PavStage, error) {
	storage, stages := Storage(driver, handle), &pavv1.PavStageList{}
	if err := cache.List(ctx, stages, client.MatchingFields{stagesByStorage: Bucket(storage)}); err != nil {
		return nil, fmt.Errorf("looking up where the volume with the handle %q is staged: %w", handle, err)
	}
	return slices.DeleteFunc(stages.Items, func(s pavv1.PavStage) bool { return storageOfStage(&s) != storage }), nil
}

// VolumesOf returns the PersistentVolumes of the storage with a driver and handle, according to the cache.
func VolumesOf(ctx context.Context, cache client.Reader, driver, handle string) ([]*corev1.PersistentVolume, error) {
	storage, volumes := Storage(driver, handle), &corev1.PersistentVolumeList{}
	if err := cache.List(ctx, volumes, client.MatchingFields{PVsByStorage: Bucket(storage)}); err != nil {
		return nil, fmt.Errorf("looking up the PersistentVolume with the handle %q: %w", handle, err)
	}
	var of []*corev1.PersistentVolume
	for i := range volumes.Items {
		if pv := &volumes.Items[i]; storageOfPV(pv) == storage {
			of = append(of, pv)
		}
	}
	return of, nil
}

// The kinds of objects that can use storage.
const (
	KindPV     = "PersistentVolume"
	KindVolume = "PavVolume"
	KindStage  = "PavStage"

	// KindSnapshot is that of a snapshot whose handle the creation pod of a restored volume names as its own.
	KindSnapshot = "PavSnapshot"
)

// Holder is an object that uses storage: the storage must not be deleted while the object exists.
type Holder struct {
	Kind, Name string

	// Phase is the phase of a PavVolume.
	Phase pavv1.VolumePhase

	// Node is the node of a PavStage.
	Node string
}

// StagedOn returns the nodes of those holders that are PavStages.
func StagedOn(holders []Holder) []string {
	var nodes []string
	for _, h := range holders {
		if h.Kind == KindStage {
			nodes = append(nodes, h.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// ListNodes lists at most three nodes.
func ListNodes(names []string) string {
	const most = 3
	text := "node "
	if len(names) > 1 {
		text = "nodes "
	}
	if len(names) <= most {
		return text + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s%s and %d more", text, strings.Join(names[:most], ", "), len(names)-most)
}

// StorageKey selects holders: those of the storage of driver and handle, and the PavStages of the PersistentVolume of
// the name, which may have been created again with another handle.
type StorageKey struct {
	Driver, Handle, Name string
}

// holding has the fields of an object that may use storage.
type holding struct {
	Holder

	// storage is the storage that it uses.
	storage string

	// driver and volume are those of a PavStage, which also uses the storage of the PersistentVolume of that name.
	driver, volume string
}

// holdingsOf returns the holdings of a list's objects, without objects that cannot use storage.
func holdingsOf(list client.ObjectList) []holding {
	var all []holding
	switch typed := list.(type) {
	case *corev1.PersistentVolumeList:
		for i := range typed.Items {
			if pv := &typed.Items[i]; pv.Spec.CSI != nil {
				all = append(all, holding{Holder: Holder{Kind: KindPV, Name: pv.Name}, storage: storageOfPV(pv)})
			}
		}
	case *pavv1.PavVolumeList:
		for i := range typed.Items {
			v := &typed.Items[i]
			for _, storage := range storagesOfVolume(v) {
				all = append(all, holding{Holder: Holder{Kind: KindVolume, Name: v.Name, Phase: v.Status.Phase}, storage: storage})
			}
		}
	case *pavv1.PavStageList:
		for i := range typed.Items {
			if s := &typed.Items[i]; HoldsVolume(s) {
				all = append(all, holding{
					Holder:  Holder{Kind: KindStage, Name: s.Name, Node: s.Spec.NodeName},
					storage: storageOfStage(s), driver: s.Spec.Provisioner, volume: s.Spec.VolumeName,
				})
			}
		}
	}
	return all
}

// holders returns the holders of the storage of a volume: PersistentVolumes first, as people know them best.
func holders(all []holding, of StorageKey) []Holder {
	key := Storage(of.Driver, of.Handle)
	var found []Holder
	for i := range all {
		h := &all[i]
		if named := h.Kind == KindStage && h.driver == of.Driver && h.volume == of.Name; named || h.storage == key {
			found = append(found, h.Holder)
		}
	}
	rank := map[string]int{KindPV: 0, KindVolume: 1, KindSnapshot: 1, KindStage: 2}
	slices.SortFunc(found, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(rank[a.Kind], rank[b.Kind]), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(found)
}

// HoldsVolume reports whether a stage prevents the deletion of its volume. The record of a failed stage, which was
// reverted, does not.
func HoldsVolume(stage *pavv1.PavStage) bool {
	return stage.Status.Phase != pavv1.StageFailed || slices.Contains(stage.Finalizers, pavv1.StageFinalizer)
}

// Holders returns the objects that use the storage of a volume, according to the cache.
func Holders(ctx context.Context, cache client.Reader, of StorageKey) ([]Holder, error) {
	storage := Bucket(Storage(of.Driver, of.Handle))
	var all []holding
	for _, look := range []struct {
		list         client.ObjectList
		index, value string
	}{
		{&pavv1.PavVolumeList{}, volumesByStorage, storage},
		{&corev1.PersistentVolumeList{}, PVsByStorage, storage},
		{&pavv1.PavStageList{}, stagesByStorage, storage},
		{&pavv1.PavStageList{}, StagesByVolume, Bucket(of.Name)},
	} {
		if err := cache.List(ctx, look.list, client.MatchingFields{look.index: look.value}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("looking up who has the handle %q: %w", of.Handle, err)
		}
		all = append(all, holdingsOf(look.list)...)
	}
	return holders(all, of), nil
}

// Concerned returns the names of the PavVolumes for which it matters whether other objects use the storage.
func Concerned(ctx context.Context, cache client.Reader, storage string) ([]string, error) {
	var concerned []string
	for _, by := range []string{volumesByStorage, volumesByConflict} {
		volumes := &pavv1.PavVolumeList{}
		if err := cache.List(ctx, volumes, client.MatchingFields{by: Bucket(storage)}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("looking up PavVolumes: %w", err)
		}
		for i := range volumes.Items {
			v := &volumes.Items[i]
			if conflictOfVolume(v) == storage || slices.Contains(storagesOfVolume(v), storage) {
				concerned = append(concerned, v.Name)
			}
		}
	}
	return concerned, nil
}

// StoragesOf returns the storage that an object uses; a PavVolume may use two.
func StoragesOf(object client.Object) []string {
	switch typed := object.(type) {
	case *corev1.PersistentVolume:
		if storage := storageOfPV(typed); storage != "" {
			return []string{storage}
		}
		return nil
	case *pavv1.PavVolume:
		return storagesOfVolume(typed)
	case *pavv1.PavStage:
		return []string{storageOfStage(typed)}
	default:
		return nil
	}
}
