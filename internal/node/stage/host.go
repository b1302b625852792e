package stage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

// Host does mounts in the node's mount namespace. It implements Mounter.
type Host struct {
	// Namespace is the node's.
	Namespace *mount.Namespace
}

// Mounted implements Mounter.
func (h Host) Mounted(ctx context.Context, path string) (mounted bool, err error) {
	err = h.Namespace.Do(ctx, func() error {
		mounted, err = mount.IsMountPoint(path)
		return err
	})
	return mounted, err
}

// Options implements Mounter.
func (h Host) Options(ctx context.Context, path string) (options mount.BindOptions, err error) {
	err = h.Namespace.Do(ctx, func() error {
		mounts, err := mount.Mounts(path)
		if err != nil {
			return err
		}
		for _, m := range mounts {
			if m.Point == path {
				options = m.Options
				return nil
			}
		}
		return fmt.Errorf("%s: %w", path, mount.ErrNotMounted)
	})
	return options, err
}

// Bind implements Mounter.
func (h Host) Bind(ctx context.Context, source, target string, options mount.BindOptions) error {
	return h.Namespace.Do(ctx, func() error {
		if err := mount.CreateDir(filepath.Dir(target), filepath.Base(target), 0o750); err != nil {
			return err
		}
		return mount.Bind(source, target, options)
	})
}

// Unmount implements Mounter.
func (h Host) Unmount(ctx context.Context, path string) error {
	return h.Namespace.Do(ctx, func() error { return mount.Unmount(ctx, path) })
}

// Remove implements Mounter.
func (h Host) Remove(ctx context.Context, path string) error {
	return h.Namespace.Do(ctx, func() error {
		if err := unix.Rmdir(path); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("removing %q: %w", path, err)
		}
		return nil
	})
}
