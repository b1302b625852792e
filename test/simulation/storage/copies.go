package storage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Data is what is in a volume or a snapshot.
type Data struct {
	// Of is the UID of the PavVolume that was created empty, and whose data it is: that of the volume itself, or of what it is
	// a copy of. It is empty for the volumes of administrators.
	Of types.UID

	// Tenant is the namespace of the claim of that PavVolume, if its script says so.
	Tenant string
}

// Snapshot is a snapshot in the storage system. The handle identifies the snapshot within its driver.
type Snapshot struct {
	Handle string

	// By is the UID of the PavSnapshot whose creation pod made the snapshot.
	By types.UID

	// Data is what is in the snapshot, and Size the size of its volume in bytes; 0 if it is not known.
	Data Data
	Size int64
}

// FindSnapshot returns a snapshot, or nil if the snapshot does not exist.
func (s *System) FindSnapshot(driver, handle string) *Snapshot {
	return s.snapshots[key(driver, handle)]
}

// Words with values: what a script copies, for example "from=VolumeSnapshot/s", whose claim a volume is for, its size in
// bytes, and its attribute. An empty kind means that nothing is copied.
const (
	from   = "from="
	tenant = "tenant="
	size   = "size="
	speed  = "speed="
)

// value returns the value of a word, or "".
func (s Script) value(prefix string) string {
	for _, word := range s.Words {
		if value, found := strings.CutPrefix(word, prefix); found {
			return value
		}
	}
	return ""
}

// Size returns the size, in bytes, that a script asks for.
func (s Script) Size() (int64, error) {
	bytes, err := strconv.ParseInt(s.value(size), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the size of a volume: %w", err)
	}
	return bytes, nil
}

// Kinds of what scripts copy.
const (
	OfVolume   = "PersistentVolumeClaim"
	OfSnapshot = "VolumeSnapshot"
)

// Source returns the kind and the handle of what a script copies. The kind is empty if it copies nothing.
func (s Script) Source() (kind, handle string) {
	kind, handle, _ = strings.Cut(s.value(from), "/")
	return kind, handle
}

// source returns the data and the size of what a script copies.
func (s *System) source(driver string, script Script) (Data, int64, error) {
	kind, handle := script.Source()
	if kind == OfSnapshot {
		if found := s.FindSnapshot(driver, handle); found != nil {
			return found.Data, found.Size, nil
		}
	} else if found := s.Find(driver, handle); found != nil {
		return found.Data, found.Size, nil
	}
	return Data{}, 0, fmt.Errorf("%s has no %s with the handle %q", driver, kind, handle)
}

// create makes a volume, empty or as a copy. It does nothing if the volume exists.
func (s *System) create(driver string, script Script, by types.UID) error {
	if s.Find(driver, script.Handle) != nil {
		return nil
	}
	made := &Volume{Handle: script.Handle, By: by, Data: Data{Of: by, Tenant: script.value(tenant)}, Speed: script.value(speed)}
	if kind, _ := script.Source(); kind != "" {
		var err error
		if made.Data, made.SourceSize, err = s.source(driver, script); err != nil {
			return err
		}
	}
	if script.value(size) != "" {
		var err error
		if made.Size, err = script.Size(); err != nil {
			return err
		}
	}
	s.volumes[key(driver, script.Handle)] = made
	return nil
}

// existing returns a volume that a script changes.
func (s *System) existing(driver, handle string) (*Volume, error) {
	found := s.Find(driver, handle)
	if found == nil {
		return nil, fmt.Errorf("%s has no volume with the handle %q", driver, handle)
	}
	return found, nil
}

// expand makes a volume as large as a script asks for, and returns its size. It never shrinks the volume.
func (s *System) expand(driver string, script Script) (int64, error) {
	found, err := s.existing(driver, script.Handle)
	if err != nil {
		return 0, err
	}
	asked, err := script.Size()
	if err != nil {
		return 0, err
	}
	found.Size = max(found.Size, asked)
	return found.Size, nil
}

// modify gives a volume the attribute that a script asks for.
func (s *System) modify(driver string, script Script) error {
	found, err := s.existing(driver, script.Handle)
	if err != nil {
		return err
	}
	found.Speed = script.value(speed)
	return nil
}

// take makes a snapshot. It does nothing if the snapshot exists.
func (s *System) take(driver string, script Script, by types.UID) (*Snapshot, error) {
	if found := s.FindSnapshot(driver, script.Handle); found != nil {
		return found, nil
	}
	data, bytes, err := s.source(driver, script)
	if err != nil {
		return nil, err
	}
	made := &Snapshot{Handle: script.Handle, By: by, Data: data, Size: bytes}
	s.snapshots[key(driver, script.Handle)] = made
	return made, nil
}

// DataOf returns the data of a volume or a snapshot, and whether it exists.
func (s *System) DataOf(driver, kind, handle string) (Data, bool) {
	data, _, err := s.source(driver, Script{Words: []string{from + kind + "/" + handle}})
	return data, err == nil
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
