package node

import (
	"context"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/health"
	"github.com/albertofaria/pav/internal/node/stage"
)

// Mounts gives an agent access to the mounts of clients on a node.
type Mounts struct {
	agent *Agent
}

var (
	_ stage.Mounter = (*Mounts)(nil)
	_ health.Prober = (*Mounts)(nil)
	_ stage.Fencer  = (*Mounts)(nil)
)

// maxLayers is the maximum number of mounts that are stacked on a target. When a target has that many, all but the
// lowest are unmounted before the next one is mounted.
const maxLayers = 16

func (n *Node) isMounted(path string) bool {
	at := n.places[path]
	return at != nil && len(at.layers) > 0
}

// unmount removes all mounts at a path and below it.
func (n *Node) unmount(path string) {
	for _, at := range n.below(path) {
		n.places[at].layers = nil
	}
}

// makePlace creates a mount point, a file or a directory, if it does not exist. If client is true, it marks the mount
// point as a target of a client.
func (n *Node) makePlace(path string, isFile, client bool) error {
	at := n.places[path]
	switch {
	case at == nil:
		n.places[path] = &place{isFile: isFile, client: client}
		return nil
	case len(at.layers) > 0 || at.isFile == isFile:
		at.client = at.client || client
		return nil
	case isFile:
		return fmt.Errorf("creating file %q: %w but a directory", path, mount.ErrNotRegular)
	default:
		return fmt.Errorf("creating directory %q: %w", path, unix.ENOTDIR)
	}
}

// isFileNow reports whether a file is visible at a place. If something is mounted there, the uppermost mount decides.
func (p *place) isFileNow() bool {
	if found := top(p.layers); found != nil {
		return found.content.isFile()
	}
	return p.isFile
}

// seen returns the visible layer at a place: the uppermost mount, or else the node's own disk.
func (p *place) seen() layer {
	if found := top(p.layers); found != nil {
		return *found
	}
	if p.disk == nil {
		p.disk = &content{volume: Volume{Name: Disk}}
		if p.isFile {
			p.disk.volume.Mode = mount.Block
		}
	}
	return layer{content: p.disk}
}

// Mounted implements stage.Mounter.
func (m *Mounts) Mounted(ctx context.Context, path string) (bool, error) {
	return ask(ctx, m.agent, "Mounted "+path, func() (bool, error) { return m.agent.node.isMounted(path), nil })
}

// Bind implements stage.Mounter.
func (m *Mounts) Bind(ctx context.Context, b stage.Binding) error {
	n := m.agent.node
	return m.agent.doMount(ctx, b.Target, "Bind "+b.Target,
		func() error { return n.makePlace(b.Target, b.Mode == corev1.PersistentVolumeBlock, true) },
		func() error {
			source, to := n.places[b.Source], n.places[b.Target]
			if source == nil || to == nil {
				return fmt.Errorf("binding %q at %q: %w", b.Source, b.Target, fs.ErrNotExist)
			}
			if to.isFileNow() != source.isFileNow() {
				return fmt.Errorf("mounting at %q: %w", b.Target, mount.ErrMismatch)
			}
			return to.bind(b, source.seen())
		})
}

// bind mounts the source layer at a place. It does nothing if that layer is already the uppermost mount there, with the
// same options.
func (p *place) bind(b stage.Binding, source layer) error {
	options := both(b.Options, source.options)
	if source.content.volume.Mode == mount.Block {
		options.NoDev = false
	}
	switch found := top(p.layers); {
	case found == nil:
	case found.content == source.content && found.options == options:
		return nil
	case !b.Cover:
		return fmt.Errorf("mounting at %q: %w", b.Target, mount.ErrOccupied)
	case len(p.layers) >= maxLayers:
		p.layers = p.layers[:1]
	}
	p.add(layer{content: source.content, options: options, follows: !b.Options.ReadOnly})
	return nil
}

// both returns the options that result from the options of a bind mount and of its source.
func both(a, b mount.BindOptions) mount.BindOptions {
	return mount.BindOptions{
		ReadOnly: a.ReadOnly || b.ReadOnly,
		NoSuid:   a.NoSuid || b.NoSuid,
		NoDev:    a.NoDev || b.NoDev,
		NoExec:   a.NoExec || b.NoExec,
		NoAtime:  a.NoAtime || b.NoAtime,
	}
}

// Unmount implements stage.Mounter.
func (m *Mounts) Unmount(ctx context.Context, path string) error {
	return m.agent.do(ctx, "Unmount "+path, func() error {
		m.agent.node.unmount(path)
		return nil
	})
}

// Remove implements stage.Mounter.
func (m *Mounts) Remove(ctx context.Context, path string) error {
	n := m.agent.node
	return m.agent.do(ctx, "RemoveTarget "+path, func() error {
		if n.isMounted(path) {
			return fmt.Errorf("removing %q: %w", path, mount.ErrBusyMount)
		}
		delete(n.places, path)
		return nil
	})
}

// Probe implements health.Prober. It continues after the end of ctx.
func (m *Mounts) Probe(ctx context.Context, path string) (mount.Usage, error) {
	const operation = "Probe "
	n, ctx := m.agent.node, context.WithoutCancel(ctx)
	if err := pass(ctx, m.agent.gate.Before, operation+path); err != nil {
		return mount.Usage{}, err
	}
	var usage mount.Usage
	found, err := n.mountedAt(path)
	if err == nil {
		usage, err = m.wait(path, found)
	}
	if lost := pass(ctx, m.agent.gate.After, operation+path); lost != nil {
		return mount.Usage{}, lost
	}
	return usage, err
}

// mountedAt returns the content of the uppermost mount at a path. It returns an error if nothing is mounted there.
func (n *Node) mountedAt(path string) (*content, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.places[path]
	if at == nil {
		return nil, fmt.Errorf("opening %q: %w", path, fs.ErrNotExist)
	}
	found := top(at.layers)
	if found == nil {
		return nil, fmt.Errorf("probing %q: %w", path, mount.ErrNotMounted)
	}
	return found.content, nil
}

// wait waits until a volume does not hang, and returns the result of Probe. It also waits for a volume that is not
// mounted anywhere any more.
func (m *Mounts) wait(path string, volume *content) (mount.Usage, error) {
	n := m.agent.node
	for {
		n.mu.Lock()
		health, ended, changed := volume.health, m.agent.ended, n.changed
		n.mu.Unlock()
		switch {
		case ended:
			return mount.Usage{}, errEnded
		case health == Answers:
			return mount.Usage{Bytes: mount.Amounts{Total: volume.volume.Bytes}}, nil
		case health != Hangs && volume.diesForGood():
			return mount.Usage{}, fmt.Errorf("probing %q: %w: %w", path, mount.ErrDead, unix.ENOTCONN)
		case health != Hangs:
			return mount.Usage{}, fmt.Errorf("probing %q: %w", path, unix.EIO)
		}
		<-changed
	}
}

// diesForGood reports whether an error from the kernel proves that the volume is dead.
func (c *content) diesForGood() bool { return c.volume.Daemon || c.volume.Mode == mount.Block }

// Fence implements stage.Fencer.
func (m *Mounts) Fence(ctx context.Context, path string) error {
	n := m.agent.node
	return m.agent.do(ctx, "Fence "+path, func() error {
		at := n.places[path]
		switch {
		case at == nil:
			return fmt.Errorf("aborting the FUSE connection of %q: %w", path, fs.ErrNotExist)
		case len(at.layers) == 0:
			return fmt.Errorf("aborting the FUSE connection of %q: %w", path, mount.ErrNotMounted)
		}
		if c := top(at.layers).content; c.volume.Daemon && c.volume.Mode != mount.Block {
			c.health = Dead
			n.wakeProbes()
		}
		return nil
	})
}
