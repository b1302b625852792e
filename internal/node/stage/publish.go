package stage

import (
	"context"
	"fmt"

	"github.com/albertofaria/pav/internal/mount"
)

// Mounter does the mounts of client pods, in the node's mount namespace.
type Mounter interface {
	// Mounted says whether something is mounted at path.
	Mounted(ctx context.Context, path string) (bool, error)

	// Bind makes what is mounted at source available at target, a directory that it makes.
	Bind(ctx context.Context, source, target string, options mount.BindOptions) error

	// Unmount takes away whatever is mounted at path. It does nothing where nothing is.
	Unmount(ctx context.Context, path string) error

	// Remove removes an empty directory. It does nothing where there is none.
	Remove(ctx context.Context, path string) error

	// Options returns what is forbidden to users of what is mounted at path.
	Options(ctx context.Context, path string) (mount.BindOptions, error)
}

// Publication is what a client pod is to see of a staged volume.
type Publication struct {
	// Target is the path in the client pod's folder.
	Target string

	// Options are what the pod's view is restricted to; the kernel enforces them.
	Options mount.BindOptions
}

// Publish makes a staged volume available to a client pod. It needs no API server. It may be repeated.
func (s *Stager) Publish(ctx context.Context, v Volume, p Publication) error {
	release, err := s.inflight.part(v.key(), p.Target)
	if err != nil {
		return err
	}
	defer release()

	shared, exclusive := s.names(v)
	name, err := s.attachedAs(ctx, shared, exclusive)
	if err != nil {
		return err
	}
	if name == "" {
		return fmt.Errorf("%w: provisioner %q, handle %q", ErrNotStaged, v.Driver, v.Handle)
	}
	published, err := s.mounts.Mounted(ctx, p.Target)
	if err != nil {
		return err
	}
	if published {
		return s.checkPublished(ctx, p)
	}
	return s.mounts.Bind(ctx, s.dirs.Volume(name), p.Target, p.Options)
}

// checkPublished says whether a target that is published already is what is asked for: a view that
// can be written to must not stand in for a read-only one.
func (s *Stager) checkPublished(ctx context.Context, p Publication) error {
	options, err := s.mounts.Options(ctx, p.Target)
	if err != nil {
		return err
	}
	if p.Options.ReadOnly && !options.ReadOnly {
		return fmt.Errorf("%w: it can be written to", ErrMismatch)
	}
	return nil
}

// Unpublish takes a volume away from a client pod, and removes the target. It may be repeated.
func (s *Stager) Unpublish(ctx context.Context, v Volume, target string) error {
	release, err := s.inflight.part(v.key(), target)
	if err != nil {
		return err
	}
	defer release()
	if err := s.mounts.Unmount(ctx, target); err != nil {
		return err
	}
	return s.mounts.Remove(ctx, target)
}
