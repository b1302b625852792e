package storage

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is a snapshot in the storage system. The handle identifies the snapshot within its driver.
type Snapshot struct {
	Handle string

	// By is the UID of the PavSnapshot whose creation pod made the snapshot.
	By types.UID

	// Of is the handle of the volume.
	Of string
}

// FindSnapshot returns a snapshot, or nil if the snapshot does not exist.
func (s *System) FindSnapshot(driver, handle string) *Snapshot {
	return s.snapshots[key(driver, handle)]
}

// Source returns the handle of the volume that a script reads to take a snapshot.
func (s Script) Source() string { return s.Words[0] }

// take makes a snapshot. It does nothing if the snapshot exists.
func (s *System) take(driver string, script Script, by types.UID) error {
	if s.FindSnapshot(driver, script.Handle) != nil {
		return nil
	}
	of := s.Find(driver, script.Source())
	if of == nil {
		return fmt.Errorf("%s has no volume with the handle %q", driver, script.Source())
	}
	s.snapshots[key(driver, script.Handle)] = &Snapshot{Handle: script.Handle, By: by, Of: of.Handle}
	return nil
}

// DeleteSnapshot deletes a snapshot for the PavSnapshot with the UID by. It does nothing if the snapshot does not exist.
func (s *System) DeleteSnapshot(driver, handle string, by types.UID) {
	snapshot := s.FindSnapshot(driver, handle)
	if snapshot == nil {
		return
	}
	if s.DeletingSnapshot != nil {
		s.DeletingSnapshot(driver, snapshot, by)
	}
	delete(s.snapshots, key(driver, handle))
}

// AllSnapshots returns all snapshots as sorted strings of the form driver/handle.
func (s *System) AllSnapshots() []string { return slices.Sorted(maps.Keys(s.snapshots)) }
