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

// Disk is the name of the node's own disk. It is used in place of the name of a volume.
const Disk = "the node's disk"

// Volume describes a volume that a pod mounts at /pav/volume.
type Volume struct {
	// Name identifies the volume in the results of methods such as Targets. Volumes with the same data may have the
	// same name.
	Name string

	// Mode is the kind of the volume. If it is empty, the volume is a file system.
	Mode mount.VolumeMode

	// Bytes is the size of a block device. ReadOnly means that the block device refuses writes.
	Bytes    int64
	ReadOnly bool

	// Daemon means that the volume is a FUSE file system, which dies with its daemon. For other file systems, no error
	// from the kernel proves that they are dead.
	Daemon bool
}

// Health is the health of a volume. It is the same at all its mounts.
type Health int

// Values of Health.
const (
	// Answers is the health of a new volume: Probe succeeds.
	Answers Health = iota

	// Hangs makes Probe wait until the health changes.
	Hangs

	// CutOff makes the volume return the errors of a dead volume, but it can recover. An example is a daemon that
	// cannot reach its servers.
	CutOff

	// Dead is like CutOff, but the volume cannot recover.
	Dead
)

// Mount is a volume that a pod has mounted.
type Mount struct {
	node    *Node
	content *content
}

// Becomes changes the health of a volume. A dead or fenced volume stays as it is.
func (m *Mount) Becomes(health Health) {
	m.node.mu.Lock()
	defer m.node.mu.Unlock()
	if m.content.health != Dead {
		m.content.health = health
		m.node.wakeProbes()
	}
}

// pavOf returns the /pav for a name. The name is a stage, the ID of an inline volume, or the target at which /pav is
// mounted for a pod. A target also finds a /pav that was removed from its directory, as a pod may still have it
// mounted.
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

// writable is pavOf for a caller that changes the /pav. It returns an error if the /pav was removed.
func (n *Node) writable(name string) (*directory, error) {
	p, err := n.pavOf(name)
	if err == nil && p.removed {
		err = fmt.Errorf("writing to /pav of %q: %w", name, fs.ErrNotExist)
	}
	return p, err
}

// PodWrites writes a file in /pav, and creates its parent directories. The name is a path relative to /pav.
func (n *Node) PodWrites(pav, name, text string) error {
	return n.make(pav, name, file{text: text})
}

// PodMakes creates a directory in /pav, and its parent directories.
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

// put creates a file or a directory. It returns the functions that wake the agents that watch for it.
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

// watchers returns the functions that wake the agents that watch a /pav.
func (n *Node) watchers(p *directory) []func() {
	var woken []func()
	for _, a := range n.agents {
		for _, await := range a.awaited {
			if await.pav == p {
				woken = append(woken, await.woken)
			}
		}
	}
	for id, f := range n.stages {
		for _, a := range n.agents {
			if f.pav == p && a.watched[id] == p && a.wake != nil {
				woken = append(woken, func() { a.wake(id) })
			}
		}
	}
	return woken
}

// PodReads returns the text of a file in /pav, and whether that file exists.
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

// PodRemoves removes a file or a directory from /pav, with its content. It does nothing if the name does not exist.
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

// PodMounts mounts a volume at /pav/volume, on top of earlier mounts. It creates the mount point, a directory or a
// file, if it does not exist.
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

// PodUnmounts unmounts the uppermost mount at /pav/volume. Clients keep their mounts of that volume.
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

// PodSees returns the name of the volume at /pav/volume, or Disk for a directory of /pav itself. It also reports
// whether one of them exists.
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

// PodCovers mounts something over all of /pav. That mount is removed, together with all mounts below it, when the /pav
// is unpublished from any pod.
func (n *Node) PodCovers(pav string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.pavOf(pav)
	if err == nil {
		p.covers++
	}
	return err
}
