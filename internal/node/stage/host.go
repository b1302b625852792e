package stage

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/albertofaria/pav/internal/mount"
)

// Host does mounts in the node's mount namespace. It implements Mounter.
type Host struct {
	// Namespace is the node's.
	Namespace *mount.Namespace
}

// Mounted implements Mounter.
func (h Host) Mounted(ctx context.Context, path string) (bool, error) {
	return mount.In(ctx, h.Namespace, func() (bool, error) { return mount.IsMountPoint(path) })
}

// Options implements Mounter.
func (h Host) Options(ctx context.Context, path string) (mount.BindOptions, error) {
	return mount.In(ctx, h.Namespace, func() (mount.BindOptions, error) {
		mounts, err := mount.At(path)
		if err != nil {
			return mount.BindOptions{}, err
		}
		if len(mounts) != 1 {
			return mount.BindOptions{}, fmt.Errorf("%d mounts at %s, want one", len(mounts), path)
		}
		return mounts[0].Options, nil
	})
}

// Bind implements Mounter.
func (h Host) Bind(ctx context.Context, source, target string, options mount.BindOptions) error {
	return h.Namespace.Do(ctx, func() error {
		if err := mount.CreateDir(filepath.Dir(target), filepath.Base(target), 0o750); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err // Nobody waits any more, so nothing may be mounted.
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
	return h.Namespace.Do(ctx, func() error { return mount.RemoveDir(path) })
}
