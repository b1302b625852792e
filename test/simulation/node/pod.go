package node

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

// Disk is the name of the node's own disk, among those of volumes.
const Disk = "the node's disk"

// Volume is what a pod mounts at /pav/volume.
type Volume struct {
	// Name is what it is known by to those who look at clients. Volumes that show the same may have one name.
	Name string

	// Mode is what it is; a file system where it is empty.
	Mode mount.VolumeMode

	// Bytes is the size of a device. ReadOnly says that a device refuses writes.
	Bytes    int64
	ReadOnly bool

	// Daemon says that it is a FUSE, with whose daemon it dies. A file system that is none never proves its death.
	Daemon bool
}

// Health is what a volume is like, for all who have it mounted.
type Health int

// The healths of volumes.
const (
	// Answers is what they begin with.
	Answers Health = iota

	// Hangs has anyone who looks wait until it is something else.
	Hangs

	// CutOff is a volume that says that it is dead, and may come back, as of a daemon that cannot reach its servers.
	CutOff

	// Dead is a volume that stays so.
	Dead
)

// Mount is what a pod has mounted.
type Mount struct {
	node    *Node
	content *content
}

// Becomes changes the health of a volume. That of one that is dead, or was fenced, stays.
func (m *Mount) Becomes(health Health) {
	m.node.mu.Lock()
	defer m.node.mu.Unlock()
	if m.content.health != Dead {
		m.content.health = health
		m.node.wakeProbes()
	}
}

// pavOf returns the /pav that is meant by a name: that of a stage, the ID of an inline volume, or the target at which
// the pod has it, as a pod may have one whose directory has gone.
func (n *Node) pavOf(name string) (*directory, error) {
	if strings.HasPrefix(name, "/") {
		if at := n.places[name]; at != nil {
			for _, l := range at.layers {
				if l.content.pav != nil {
					return l.content.pav, nil
				}
			}
		}
		return nil, fmt.Errorf("%w at %q", errUnmounted, name)
	}
	for _, directories := range []map[string]*stageDirectory{n.stages, n.pods} {
		if f := directories[name]; f != nil && f.pav != nil {
			return f.pav, nil
		}
	}
	return nil, fmt.Errorf("%w: there is none of %q", errUnmounted, name)
}

// writable is pavOf for something that is to be made there.
func (n *Node) writable(name string) (*directory, error) {
	p, err := n.pavOf(name)
	if err == nil && p.removed {
		err = fmt.Errorf("writing to /pav of %q: %w", name, fs.ErrNotExist)
	}
	return p, err
}

// PodWrites writes a file of /pav, a path below it, with the directories that it lies in.
func (n *Node) PodWrites(pav, name, text string) error {
	return n.make(pav, name, file{text: text})
}

// PodMakes makes a directory of /pav, with those that it lies in.
func (n *Node) PodMakes(pav, name string) error {
	return n.make(pav, name, file{directory: true})
}

func (n *Node) make(pav, name string, f file) error {
	n.mu.Lock()
	p, err := n.writable(pav)
	var woken []func()
	if err == nil && p.covers == 0 && (len(p.volume) == 0 || name != "volume" && !strings.HasPrefix(name, "volume/")) {
		woken, err = n.put(p, name, f)
	}
	n.mu.Unlock()
	for _, wake := range woken {
		wake()
	}
	return err
}

// put makes a file or directory, and returns what wakes those who watch it.
func (n *Node) put(p *directory, name string, f file) ([]func(), error) {
	if dir := path.Dir(name); dir != "." {
		if _, err := n.put(p, dir, file{directory: true}); err != nil {
			return nil, err
		}
	}
	found, exists := p.files[name]
	switch {
	case exists && found.directory && f.directory:
		return nil, nil
	case exists && found.directory != f.directory:
		return nil, fmt.Errorf("writing %q: %w", name, unix.EISDIR)
	}
	f.written = time.Now()
	p.files[name] = f
	if exists || name != "ready" {
		return nil, nil
	}
	return n.watchers(p), nil
}

// watchers returns what wakes the agents that watch a /pav.
func (n *Node) watchers(p *directory) []func() {
	var woken []func()
	for id, f := range n.stages {
		for _, a := range n.agents {
			if f.pav == p && a.watched[id] == p && a.wake != nil {
				woken = append(woken, func() { a.wake(id) })
			}
		}
	}
	return woken
}

// PodReads returns what is in a file of /pav, if there is one.
func (n *Node) PodReads(pav, name string) (text string, exists bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.pavOf(pav)
	if err != nil || p.covers > 0 {
		return "", false
	}
	f, exists := p.files[name]
	return f.text, exists && !f.directory
}

// PodRemoves removes a file or directory of /pav, with all that is in it, if there is one.
func (n *Node) PodRemoves(pav, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.writable(pav)
	if err != nil || p.covers > 0 {
		return err
	}
	if name == "volume" {
		if len(p.volume) > 0 {
			return fmt.Errorf("removing %q: %w", name, unix.EBUSY)
		}
		p.plain = nil
	}
	for other := range p.files {
		if other == name || strings.HasPrefix(other, name+"/") {
			delete(p.files, other)
		}
	}
	return nil
}

// PodMounts mounts a volume at /pav/volume, over what is there. It makes the directory, or file, that it is mounted on.
func (n *Node) PodMounts(pav string, v Volume) (*Mount, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.writable(pav)
	if err == nil && !p.mounted {
		err = fmt.Errorf("%w in the directory of %q", errUnmounted, pav)
	}
	if err != nil {
		return nil, err
	}
	m := &Mount{node: n, content: &content{volume: v}}
	if p.covers > 0 {
		return m, nil
	}
	if len(p.volume) == 0 {
		if _, err := n.put(p, "volume", file{directory: !m.content.isFile()}); err != nil {
			return nil, err
		}
	} else if top(p.volume).content.isFile() != m.content.isFile() {
		return nil, fmt.Errorf("mounting at /pav/volume: %w", unix.ENOTDIR)
	}
	p.volume = append(p.volume, layer{content: m.content})
	return m, nil
}

// PodUnmounts unmounts what is uppermost at /pav/volume. Clients keep theirs.
func (n *Node) PodUnmounts(pav string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.pavOf(pav)
	if err != nil {
		return err
	}
	if p.covers > 0 || len(p.volume) == 0 {
		return fmt.Errorf("unmounting /pav/volume: %w", unix.EINVAL)
	}
	p.volume = slices.Clone(p.volume[:len(p.volume)-1])
	return nil
}

// PodSees returns the name of what is at /pav/volume, if there is anything: a volume, or Disk.
func (n *Node) PodSees(pav string) (what string, exists bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.pavOf(pav)
	if err != nil || p.covers > 0 {
		return "", false
	}
	found, err := p.offered()
	if err != nil {
		return "", false
	}
	return found.volume.Name, true
}

// PodCovers mounts something over all of /pav. It goes when a pod that has the /pav goes, with whatever is mounted
// below it.
func (n *Node) PodCovers(pav string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.pavOf(pav)
	if err == nil {
		p.covers++
	}
	return err
}
