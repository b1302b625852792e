package stage

import (
	"context"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/mount"
)

// Mounter does the mounts of client pods, in the node's mount namespace.
type Mounter interface {
	// Mounted reports whether something is mounted at path.
	Mounted(ctx context.Context, path string) (bool, error)

	// Bind makes a volume available to a client pod. The error is mount.ErrHangs while an earlier call for the
	// target, even one that was given up, waits for the volume to answer.
	Bind(ctx context.Context, b Binding) error

	// Unmount unmounts everything at path. It does nothing if nothing is mounted.
	Unmount(ctx context.Context, path string) error

	// Remove removes a target: an empty directory or file. It does nothing if it does not exist.
	Remove(ctx context.Context, path string) error
}

// Binding is a bind mount of a volume at a target.
type Binding struct {
	// Source is where the volume is mounted.
	Source string

	// Target is created if it does not exist: a directory or a file, depending on Mode. Its parent exists.
	Target string
	Mode   corev1.PersistentVolumeMode

	// Options are the restrictions at the target.
	Options mount.BindOptions

	// Cover mounts over anything else that is mounted at the target; without it, that is an error.
	Cover bool
}

// Host mounts in the node's mount namespace. It implements Mounter.
type Host struct {
	// Namespace is the mount namespace of the node.
	Namespace *mount.Namespace
}

// Mounted implements Mounter.
func (h Host) Mounted(ctx context.Context, path string) (bool, error) {
	return mount.In(ctx, h.Namespace, func() (bool, error) { return mount.IsMountPoint(path) })
}

// Bind implements Mounter.
func (h Host) Bind(ctx context.Context, b Binding) error {
	create, bind := mount.CreateDir, mount.Bind
	if b.Mode == corev1.PersistentVolumeBlock {
		create = mount.CreateFile
	}
	if b.Cover {
		bind = mount.Cover
	}
	return h.Namespace.DoMount(ctx, b.Target, func() error {
		if err := create(filepath.Dir(b.Target), filepath.Base(b.Target), 0o750); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err // The caller does not wait any more, so nothing may be mounted.
		}
		return bind(b.Source, b.Target, b.Options)
	})
}

// Unmount implements Mounter.
func (h Host) Unmount(ctx context.Context, path string) error {
	return h.Namespace.Do(ctx, func() error { return mount.Unmount(ctx, path) })
}

// Remove implements Mounter.
func (h Host) Remove(ctx context.Context, path string) error {
	return h.Namespace.Do(ctx, func() error { return mount.RemoveTarget(path) })
}

// Probe implements health.Prober.
func (h Host) Probe(ctx context.Context, path string) (mount.Usage, error) {
	// The caller must know when the kernel has released the path, not when ctx ends.
	return mount.In(context.WithoutCancel(ctx), h.Namespace, func() (mount.Usage, error) {
		if err := mount.Probe(path); err != nil {
			return mount.Usage{}, err
		}
		usage, err := mount.UsageOf(path)
		if err != nil {
			return mount.Usage{}, nil //nolint:nilerr // It answers, but does not report its usage.
		}
		return usage, nil
	})
}
