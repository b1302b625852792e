// Package storage simulates a storage system and defines the scripts of workflow pods. It runs the scripts that create
// and delete volumes and snapshots; the simulated nodes run all other scripts. The package records each volume and each
// snapshot with its creator. It does not check any Kubernetes rules about them.
package storage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Volume is a volume of the storage system. The handle identifies the volume within its driver.
type Volume struct {
	Handle string

	// By is the UID of the PavVolume whose creation pod made the volume. It is empty if an administrator made it.
	By types.UID

	// Data is what is in the volume.
	Data Data

	// Size is the size of the volume in bytes, and SourceSize that of what it is a copy of; 0 if it is not known.
	Size, SourceSize int64

	// Speed is the attribute of the volume; "" if none was asked for.
	Speed string
}

// System contains all volumes and snapshots of the simulation, by driver and handle.
type System struct {
	volumes   map[string]*Volume
	snapshots map[string]*Snapshot

	// Deleting, if not nil, is called before the deletion of each volume. by is the UID of the PavVolume whose pod deletes
	// the volume.
	Deleting func(driver string, v *Volume, by types.UID)

	// DeletingSnapshot is the same for snapshots and PavSnapshots.
	DeletingSnapshot func(driver string, s *Snapshot, by types.UID)
}

// New returns an empty storage system.
func New() *System { return &System{volumes: map[string]*Volume{}, snapshots: map[string]*Snapshot{}} }

func key(driver, handle string) string { return driver + "/" + handle }

// Find returns a volume, or nil if the volume does not exist.
func (s *System) Find(driver, handle string) *Volume { return s.volumes[key(driver, handle)] }

// Make creates a volume. It does nothing if the volume exists.
func (s *System) Make(driver, handle string, by types.UID) {
	if s.Find(driver, handle) == nil {
		s.volumes[key(driver, handle)] = &Volume{Handle: handle, By: by, Data: Data{Of: by}}
	}
}

// Delete deletes a volume for the PavVolume with the UID by. It does nothing if the volume does not exist.
func (s *System) Delete(driver, handle string, by types.UID) {
	v := s.Find(driver, handle)
	if v == nil {
		return
	}
	if s.Deleting != nil {
		s.Deleting(driver, v, by)
	}
	delete(s.volumes, key(driver, handle))
}

// All returns all volumes as sorted strings of the form driver/handle.
func (s *System) All() []string { return slices.Sorted(maps.Keys(s.volumes)) }

// Script is the task of a workflow pod. The arguments of the container define it: a verb, a handle, and further words.
type Script struct {
	Verb, Handle string
	Words        []string
}

// The verbs of scripts.
const (
	Create         = "create"
	Delete         = "delete"
	Validate       = "validate" // leaves the same files as Stage, because both may share a script
	Stage          = "stage"
	Unstage        = "unstage"
	Expand         = "expand"
	ExpandOnNode   = "expand-on-node"
	Modify         = "modify"
	TakeSnapshot   = "take-snapshot"
	DeleteSnapshot = "delete-snapshot"
)

// Serve is the word for a daemon: the script serves its volume while it runs.
const Serve = "serve"

// Serves reports whether the script is a daemon that serves its volume while it runs.
func (s Script) Serves() bool { return s.Verb == Stage && slices.Contains(s.Words, Serve) }

// Block is the word for a block device: the volume of the script is a block device.
const Block = "block"

// IsBlock reports whether the script's volume is a block device.
func (s Script) IsBlock() bool { return slices.Contains(s.Words, Block) }

// WriteHandle is the word that makes a creation script write the handle to /pav/handle, or to /pav/snapshotHandle.
const WriteHandle = "write-handle"

// Ready is the word that makes a creation script create /pav/ready after its other files. It goes on after that, but reads
// nothing any more.
const Ready = "ready"

// Parse returns the script for the arguments of a container.
func Parse(arguments []string) (Script, error) {
	switch {
	case len(arguments) == 0:
		return Script{}, errors.New("the container has no arguments")
	case len(arguments) == 1:
		return Script{Verb: arguments[0]}, nil
	}
	return Script{Verb: arguments[0], Handle: arguments[1], Words: arguments[2:]}, nil
}

// Run executes a script that creates or deletes a volume or a snapshot. It returns the names and contents of the files that
// the script leaves in /pav.
func (s *System) Run(driver string, script Script, by types.UID) (map[string]string, error) {
	files := map[string]string{}
	switch script.Verb {
	case Create:
		if err := s.create(driver, script, by); err != nil {
			return nil, err
		}
		if slices.Contains(script.Words, WriteHandle) {
			files["handle"] = script.Handle
		}
	case Delete:
		s.Delete(driver, script.Handle, by)
	case Expand:
		capacity, err := s.expand(driver, script)
		if err != nil {
			return nil, err
		}
		files["capacity"] = fmt.Sprint(capacity)
	case Modify:
		if err := s.modify(driver, script); err != nil {
			return nil, err
		}
	case TakeSnapshot:
		snapshot, err := s.take(driver, script, by)
		if err != nil {
			return nil, err
		}
		if snapshot.Size > 0 {
			files["snapshotSize"] = fmt.Sprint(snapshot.Size)
		}
		if slices.Contains(script.Words, WriteHandle) {
			files["snapshotHandle"] = script.Handle
		}
	case DeleteSnapshot:
		s.DeleteSnapshot(driver, script.Handle, by)
	default:
		return nil, fmt.Errorf("no such verb: %q", strings.Join(append([]string{script.Verb}, script.Words...), " "))
	}
	return files, nil
}
