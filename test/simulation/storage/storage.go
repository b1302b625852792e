// Package storage is the storage system of the simulated world, and the scripts of workflow pods, which tell it
// what to do. It knows what is there and who made it, and nothing of Kubernetes' rules about it.
package storage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Volume is what a handle stands for.
type Volume struct {
	Handle string

	// By is the PavVolume whose creation pod made it; empty for an administrator's.
	By types.UID
}

// System is all storage, by driver and handle.
type System struct {
	volumes map[string]*Volume

	// Deleting hears of each volume before it is deleted.
	Deleting func(driver string, v *Volume, by types.UID)
}

// New returns an empty storage system.
func New() *System { return &System{volumes: map[string]*Volume{}} }

func key(driver, handle string) string { return driver + "/" + handle }

// Find returns a volume, or nil.
func (s *System) Find(driver, handle string) *Volume { return s.volumes[key(driver, handle)] }

// Make makes a volume, or finds it made already.
func (s *System) Make(driver, handle string, by types.UID) {
	if s.Find(driver, handle) == nil {
		s.volumes[key(driver, handle)] = &Volume{Handle: handle, By: by}
	}
}

// Delete deletes a volume, if there is one, for a PavVolume.
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

// All returns all volumes, as driver and handle, in order.
func (s *System) All() []string { return slices.Sorted(maps.Keys(s.volumes)) }

// Script is what a workflow pod does, by the arguments of its container: a verb and a handle, then words.
type Script struct {
	Verb, Handle string
	Words        []string
}

// The verbs of scripts.
const (
	Create   = "create"
	Delete   = "delete"
	Validate = "validate" // leaves what Stage leaves, as both may share a script
	Stage    = "stage"
	Unstage  = "unstage"
)

// Serve is the word for a script that serves a volume for as long as it runs.
const Serve = "serve"

// Serves reports whether the script serves a volume for as long as it runs.
func (s Script) Serves() bool { return s.Verb == Stage && slices.Contains(s.Words, Serve) }

// Block is the word for a script whose volume is a block device.
const Block = "block"

// IsBlock reports whether the script's volume is a block device.
func (s Script) IsBlock() bool { return slices.Contains(s.Words, Block) }

// WriteHandle is the word for a script that writes the handle to /pav/handle.
const WriteHandle = "write-handle"

// Parse returns the script of a container's arguments.
func Parse(arguments []string) (Script, error) {
	switch {
	case len(arguments) == 0:
		return Script{}, errors.New("the container has no arguments")
	case len(arguments) == 1:
		return Script{Verb: arguments[0]}, nil
	}
	return Script{Verb: arguments[0], Handle: arguments[1], Words: arguments[2:]}, nil
}

// Run has a script take effect, and returns the files that it leaves in /pav.
func (s *System) Run(driver string, script Script, by types.UID) (map[string]string, error) {
	files := map[string]string{}
	switch script.Verb {
	case Create:
		s.Make(driver, script.Handle, by)
		if slices.Contains(script.Words, WriteHandle) {
			files["handle"] = script.Handle
		}
	case Delete:
		s.Delete(driver, script.Handle, by)
	default:
		return nil, fmt.Errorf("no such verb: %q", strings.Join(append([]string{script.Verb}, script.Words...), " "))
	}
	return files, nil
}
