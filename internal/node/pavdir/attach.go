package pavdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

// ErrNoVolume is wrapped if a staging pod left no usable volume at /pav/volume.
var ErrNoVolume = errors.New("the staging pod left no usable volume")

// Attachment describes the volume that clients get.
type Attachment struct {
	Mode mount.VolumeMode

	// ReadOnly makes the kernel refuse writes. Only the driver of a block device can do that, so the device must be
	// read-only.
	ReadOnly bool

	// Capacity is the minimum size of a block device in bytes; with 0, any size but 0 is accepted.
	Capacity int64
}

// Attach makes /pav/volume of the stage, a directory or a block device depending on the mode, available to clients at
// Volume(stage). It does nothing if something is already attached. The error is ErrNoVolume, with a text for the
// author of the template, if there is no volume that could be attached, and mount.ErrHangs while an earlier call,
// even one that was given up, waits for the volume to answer.
func (d *Directories) Attach(ctx context.Context, stage string, a Attachment) error {
	err := d.host.DoMount(ctx, d.Volume(stage), func() error {
		_, err := opened(d, d.ofStage(stage), func(dir *mount.Dir) (struct{}, error) {
			return struct{}{}, d.attach(ctx, dir, stage, a)
		})
		return err
	})
	if errors.Is(err, errCovered) {
		return fmt.Errorf("%w: %w", ErrNoVolume, err)
	}
	if err == nil {
		d.watcher.remove(d.pav(stage))
	}
	return err
}

func (d *Directories) attach(ctx context.Context, dir *mount.Dir, stage string, a Attachment) error {
	// If /pav is not mounted, the pod's mounts below it are gone, and an empty directory on the node's own disk is in
	// their place.
	if mounted, err := mount.IsMountPoint(d.pav(stage)); err != nil {
		return err
	} else if !mounted {
		return fmt.Errorf("%w: /pav is not mounted on the node any more: it was unmounted by hand", ErrNoVolume)
	}
	volume, err := dir.OpenVolume(volumeName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no /pav/volume", ErrNoVolume)
	case errors.Is(err, mount.ErrEscapes), errors.Is(err, mount.ErrNotVolume):
		return fmt.Errorf("%w: /pav/volume: %w", ErrNoVolume, err)
	case err != nil:
		return err
	}
	defer func() { _ = volume.Close() }()
	if err := check(volume, a); err != nil {
		return err
	}
	// Opening may have hung in a dead file system or device. If the caller does not wait any more, nothing may be
	// mounted.
	if err := ctx.Err(); err != nil {
		return err
	}
	create := mount.CreateDir
	mode := fs.FileMode(0o700)
	if a.Mode == mount.Block {
		create, mode = mount.CreateFile, 0o600
	}
	if err := create(d.stagePath(stage), clientName, mode); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.known.Attach(volume, d.Volume(stage), mount.BindOptions{ReadOnly: a.ReadOnly}); err != nil {
		return err
	}
	return d.refusePav(ctx, stage)
}

// refusePav detaches a volume that is /pav itself, to which /pav/volume was a link, or of which it was a bind mount: what
// workflows leave there is not for clients, and their mounts would be taken for those of workflow pods.
func (d *Directories) refusePav(ctx context.Context, stage string) error {
	pav, err := d.known.At(d.pav(stage))
	if err != nil {
		return err
	}
	attached, err := d.known.At(d.Volume(stage))
	if err != nil || len(pav) == 0 || len(attached) == 0 || !sameContent(pav[0], attached[len(attached)-1]) {
		return err
	}
	if err := mount.Unmount(ctx, d.Volume(stage)); err != nil {
		return err
	}
	return fmt.Errorf("%w: /pav/volume is /pav itself, and must be a directory in it, or a mount", ErrNoVolume)
}

// check reports whether a volume matches the Attachment.
func check(volume *mount.Volume, a Attachment) error {
	if volume.Mode != a.Mode {
		if a.Mode == mount.Block {
			return fmt.Errorf("%w: /pav/volume of a block volume must be a block special file, not a directory", ErrNoVolume)
		}
		return fmt.Errorf("%w: /pav/volume of a file system volume must be a directory, not a block special file", ErrNoVolume)
	}
	if a.Mode != mount.Block {
		return nil
	}
	size, readOnly, err := volume.Device()
	switch {
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENOMEDIUM):
		return fmt.Errorf("%w: the device of /pav/volume is not there: %w", ErrNoVolume, err)
	case err != nil:
		return err
	case size == 0:
		return fmt.Errorf("%w: the device of /pav/volume has a size of 0 bytes", ErrNoVolume)
	case size < a.Capacity:
		return fmt.Errorf("%w: the device of /pav/volume has %d bytes, less than the %d bytes of the volume's capacity", ErrNoVolume, size, a.Capacity)
	case a.ReadOnly && !readOnly:
		return fmt.Errorf("%w: the device of /pav/volume is writable, though the volume is read-only, and only the device itself can refuse writes: "+
			"have the staging pod make it so, for example with `losetup -r` or `blockdev --setro`", ErrNoVolume)
	default:
		return nil
	}
}

// Attached reports whether a volume is attached for clients of the stage.
func (d *Directories) Attached(ctx context.Context, stage string) (bool, error) {
	return mount.In(ctx, d.host, func() (bool, error) { return mount.IsMountPoint(d.Volume(stage)) })
}

// IsPlain reports whether the attached volume is a directory of /pav itself, on the node's disk, and not a mount of
// the staging pod. It does no I/O on the volume.
func (d *Directories) IsPlain(ctx context.Context, stage string) (bool, error) {
	return mount.In(ctx, d.host, func() (bool, error) {
		pav, err := d.known.At(d.pav(stage))
		if err != nil {
			return false, err
		}
		attached, err := d.known.At(d.Volume(stage))
		if err != nil || len(pav) == 0 || len(attached) == 0 {
			return false, err
		}
		own, volume := pav[0], attached[len(attached)-1]
		return own.Major == volume.Major && own.Minor == volume.Minor && strings.HasPrefix(volume.Root, strings.TrimSuffix(own.Root, "/")+"/"), nil
	})
}

// Exchanged reports whether the attached volume is not mounted at /pav/volume any more: it was unmounted there, or
// another mount is in its place or over it. It is false for a directory of /pav itself. It does no I/O on the volume.
func (d *Directories) Exchanged(ctx context.Context, stage string) (bool, error) {
	plain, err := d.IsPlain(ctx, stage)
	if err != nil || plain {
		return false, err
	}
	return mount.In(ctx, d.host, func() (bool, error) {
		mounted, err := mount.IsMountPoint(d.pav(stage))
		if err != nil || !mounted {
			return false, err // What is mounted below it cannot be seen.
		}
		attached, err := d.known.At(d.Volume(stage))
		if err != nil || len(attached) == 0 {
			return false, err
		}
		present, err := mount.At(filepath.Join(d.pav(stage), volumeName))
		if err != nil {
			return false, err
		}
		if len(present) == 0 {
			return true, nil
		}
		was, is := attached[len(attached)-1], present[len(present)-1]
		return !sameContent(was, is), nil
	})
}

// Detach unmounts the volume at Volume(stage), after the end of a Sync of it.
func (d *Directories) Detach(ctx context.Context, stage string) error {
	defer d.syncs.prevent(stage)()
	if err := d.syncs.wait(ctx, stage); err != nil {
		return err
	}
	return d.host.Do(ctx, func() error { return mount.Unmount(ctx, d.Volume(stage)) })
}
