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

	// Bind makes a volume available to a client pod. While an earlier call for the target, given up or
	// not, waits for the volume to answer, the error is mount.ErrHangs.
	Bind(ctx context.Context, b Binding) error

	// Unmount takes away whatever is mounted at path. It does nothing where nothing is.
	Unmount(ctx context.Context, path string) error

	// Remove removes a target: an empty directory or file. It does nothing where there is none.
	Remove(ctx context.Context, path string) error
}

// Binding is a bind mount of a volume at a target.
type Binding struct {
	// Source is where the volume is mounted.
	Source string

	// Target is made if it is missing: a directory or a file, as Mode says. Its parent exists.
	Target string
	Mode   corev1.PersistentVolumeMode

	// Options are what is forbidden at the target.
	Options mount.BindOptions

	// Cover stacks the bind on whatever else is mounted at the target; without it, that is an error.
	Cover bool
}

// Host does mounts in the node's mount namespace. It implements Mounter.
type Host struct {
	// Namespace is the node's.
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
			return err // Nobody waits any more, so nothing may be mounted.
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
	// The caller must know when the kernel has let go of the path, and not when ctx ends.
	return mount.In(context.WithoutCancel(ctx), h.Namespace, func() (mount.Usage, error) {
		if err := mount.Probe(path); err != nil {
			return mount.Usage{}, err
		}
		usage, err := mount.UsageOf(path)
		if err != nil {
			return mount.Usage{}, nil //nolint:nilerr // It answers, but does not tell how full it is.
		}
		return usage, nil
	})
}
