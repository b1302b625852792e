package node

import (
	"fmt"
	"maps"
	"slices"

	"github.com/albertofaria/pav/internal/mount"
)

// Target is a path at which a client has or had a volume.
type Target struct {
	Path string

	// Sees is the name of the volume that a client sees at the path, or Disk.
	Sees string

	// Layers is the number of mounts at the path. If it is 0, the client sees the node's disk.
	Layers int

	Health   Health
	ReadOnly bool
	Mode     mount.VolumeMode
}

// Mounted returns the name of the volume that is mounted at a target, and whether anything is mounted there.
func (n *Node) Mounted(target string) (what string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.isMounted(target) {
		return "", false
	}
	return n.places[target].seen().content.volume.Name, true
}

// Targets returns all existing targets of clients, sorted by path.
func (n *Node) Targets() []Target {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []Target
	for _, path := range slices.Sorted(maps.Keys(n.places)) {
		at := n.places[path]
		if !at.client {
			continue
		}
		found := at.seen()
		all = append(all, Target{
			Path: path, Sees: found.content.volume.Name, Layers: len(at.layers), Health: found.content.health,
			ReadOnly: found.options.ReadOnly || found.content.volume.ReadOnly, Mode: found.content.volume.Mode,
		})
	}
	return all
}

// Left describes everything that PaV and its pods have left on the node: directories with their content, existing mount
// points, and mounts. It returns nothing if nothing is left. The wording may change, so no code may depend on it.
func (n *Node) Left() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var left []string
	for kind, directories := range map[string]map[string]*stageDirectory{"stage": n.stages, "pod": n.pods} {
		for id, f := range directories {
			left = append(left, f.left(kind+" "+id)...)
		}
	}
	for path, at := range n.places {
		left = append(left, "place "+path)
		for i, l := range at.layers {
			name := l.content.volume.Name
			if l.content.pav != nil {
				name = "/pav"
			}
			left = append(left, fmt.Sprintf("place %s: mount %d: %s", path, i, name))
		}
	}
	slices.Sort(left)
	return left
}

func (f *stageDirectory) left(of string) []string {
	left := []string{of}
	if f.record != nil {
		left = append(left, of+": record")
	}
	for target := range f.targets {
		left = append(left, of+": record of target "+target)
	}
	if f.pav == nil {
		return left
	}
	if f.pav.mounted {
		left = append(left, of+": /pav is mounted")
	}
	for name := range f.pav.files {
		left = append(left, of+": /pav/"+name)
	}
	for i, l := range f.pav.volume {
		left = append(left, fmt.Sprintf("%s: /pav/volume: mount %d: %s", of, i, l.content.volume.Name))
	}
	return left
}
