package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// Volume implements stage.Directories.
func (d *Directories) Volume(stage string) string { return d.agent.node.volumeOf(stage) }

// Attach implements stage.Directories.
func (d *Directories) Attach(ctx context.Context, stage string, a pavdir.Attachment) error {
	n := d.agent.node
	var volume *content
	return d.agent.doMount(ctx, d.Volume(stage), "Attach "+stage,
		func() (err error) {
			volume, err = n.stages[stage].attachable(a)
			if err != nil {
				return err
			}
			return n.makePlace(d.Volume(stage), a.Mode == mount.Block, false)
		},
		func() error {
			at := n.places[d.Volume(stage)]
			if at == nil {
				return fmt.Errorf("opening %q: %w", d.Volume(stage), fs.ErrNotExist)
			}
			if found := top(at.layers); found == nil {
				attached := layer{content: volume, options: mount.BindOptions{ReadOnly: a.ReadOnly}}
				at.add(attached)
				for _, follower := range n.followers(at) {
					follower.add(attached)
				}
			} else if found.content != volume {
				return fmt.Errorf("mounting at %q: %w", d.Volume(stage), mount.ErrOccupied)
			}
			delete(d.agent.watched, stage)
			return nil
		})
}

// attachable returns the volume at /pav/volume. It returns an error if that volume does not match the attachment.
func (f *stageDirectory) attachable(a pavdir.Attachment) (*content, error) {
	pav, err := f.open()
	if errors.Is(err, errCovered) {
		return nil, fmt.Errorf("%w: %w", pavdir.ErrNoVolume, err)
	}
	if err != nil {
		return nil, err
	}
	if !pav.mounted {
		return nil, fmt.Errorf("%w: /pav is not mounted on the node any more: it was unmounted by hand", pavdir.ErrNoVolume)
	}
	volume, err := pav.offered()
	if err != nil {
		return nil, err
	}
	return volume, volume.check(a)
}

// offered returns the volume at /pav/volume: the uppermost mount, or else the directory of /pav itself.
func (p *directory) offered() (*content, error) {
	if mounted := top(p.volume); mounted != nil {
		return mounted.content, nil
	}
	found, exists := p.files["volume"]
	if !exists {
		return nil, fmt.Errorf("%w: there is no /pav/volume", pavdir.ErrNoVolume)
	}
	if !found.directory {
		return nil, fmt.Errorf("%w: /pav/volume: %w but a regular file", pavdir.ErrNoVolume, mount.ErrNotVolume)
	}
	if p.plain == nil {
		p.plain = &content{volume: Volume{Name: Disk}, in: p}
	}
	return p.plain, nil
}

// check returns an error if the volume does not match the attachment.
func (c *content) check(a pavdir.Attachment) error {
	isBlock := c.volume.Mode == mount.Block
	switch {
	case a.Mode == mount.Block && !isBlock:
		return fmt.Errorf("%w: /pav/volume of a block volume must be a block special file, not a directory", pavdir.ErrNoVolume)
	case a.Mode != mount.Block && isBlock:
		return fmt.Errorf("%w: /pav/volume of a file system volume must be a directory, not a block special file", pavdir.ErrNoVolume)
	case !isBlock:
		return nil
	case c.health == Dead:
		return fmt.Errorf("%w: the device of /pav/volume is not there: %w", pavdir.ErrNoVolume, unix.ENXIO)
	case c.volume.Bytes == 0:
		return fmt.Errorf("%w: the device of /pav/volume has a size of 0 bytes", pavdir.ErrNoVolume)
	case c.volume.Bytes < a.Capacity:
		return fmt.Errorf("%w: the device of /pav/volume has %d bytes, less than the %d bytes of the volume's capacity", pavdir.ErrNoVolume, c.volume.Bytes, a.Capacity)
	case a.ReadOnly && !c.volume.ReadOnly:
		return fmt.Errorf("%w: the device of /pav/volume is writable, though the volume is read-only", pavdir.ErrNoVolume)
	default:
		return nil
	}
}

// attached returns the volume that is attached for clients of a stage, or nil.
func (n *Node) attached(stage string) *layer {
	if at := n.places[n.volumeOf(stage)]; at != nil {
		return top(at.layers)
	}
	return nil
}

// Attached implements stage.Directories.
func (d *Directories) Attached(ctx context.Context, stage string) (bool, error) {
	return ask(ctx, d.agent, "Attached "+stage, func() (bool, error) { return d.agent.node.attached(stage) != nil, nil })
}

// Detach implements stage.Directories.
func (d *Directories) Detach(ctx context.Context, stage string) error {
	return d.agent.do(ctx, "Detach "+stage, func() error {
		d.agent.node.detach(stage)
		return nil
	})
}

// detach unmounts the volume that is attached for clients of a stage, if there is one. It also unmounts the volume from
// the followers, as mount propagation does.
func (n *Node) detach(stage string) {
	attached := n.attached(stage)
	if attached == nil {
		return
	}
	for _, follower := range n.followers(n.places[n.volumeOf(stage)]) {
		if top(follower.layers).content == attached.content {
			follower.layers = follower.layers[:len(follower.layers)-1]
		}
	}
	n.unmount(n.volumeOf(stage))
}

// followers returns the places that also receive a volume when it is attached at the given place. A client was bound
// there while no volume was attached, so it has a writable bind mount of the bare directory.
func (n *Node) followers(of *place) []*place {
	var all []*place
	for _, at := range n.places {
		if slices.ContainsFunc(at.layers, func(l layer) bool { return of.disk != nil && l.content == of.disk && l.follows }) {
			all = append(all, at)
		}
	}
	return all
}

// isPlain is IsPlain for a caller that holds the lock.
func (n *Node) isPlain(stage string) bool {
	f, attached := n.stages[stage], n.attached(stage)
	return attached != nil && f != nil && f.pav != nil && f.pav.mounted && attached.content.in == f.pav
}

// IsPlain implements stage.Directories.
func (d *Directories) IsPlain(ctx context.Context, stage string) (bool, error) {
	return ask(ctx, d.agent, "IsPlain "+stage, func() (bool, error) { return d.agent.node.isPlain(stage), nil })
}

// Exchanged implements stage.Directories.
func (d *Directories) Exchanged(ctx context.Context, stage string) (bool, error) {
	n := d.agent.node
	return ask(ctx, d.agent, "Exchanged "+stage, func() (bool, error) {
		f, attached := n.stages[stage], n.attached(stage)
		if n.isPlain(stage) || attached == nil || f == nil || f.pav == nil || !f.pav.mounted {
			return false, nil
		}
		// A mount over /pav makes /pav/volume unreachable, so the attached volume counts as not mounted there.
		if f.pav.covers > 0 {
			return true, nil
		}
		present := top(f.pav.volume)
		return present == nil || present.content != attached.content, nil
	})
}
