package stage

import (
	"context"
	"fmt"

	"github.com/albertofaria/pav/internal/mount"
)

// Stats is the usage and the condition of a published volume.
type Stats struct {
	// Usage is its usage; zero if the volume does not report it.
	Usage mount.Usage

	// Abnormal says that something is wrong with the volume. Message says what, or that nothing is.
	Abnormal bool
	Message  string
}

// Stats returns the Stats of a volume at a target. It returns within seconds even if the volume never answers. The
// error is ErrUnknownVolume if the volume is not published at path.
func (s *Stager) Stats(ctx context.Context, v Volume, path string) (Stats, error) {
	bounded, cancel := context.WithTimeout(ctx, s.health.Timeout)
	defer cancel()
	name, err := s.publishedAs(bounded, v, path)
	if err != nil {
		return Stats{}, err
	}
	usage, err := s.health.Probe(bounded, name, path)
	if ctx.Err() != nil {
		return Stats{}, fmt.Errorf("%w: looking at the volume: %w", ErrPending, ctx.Err())
	}
	if err != nil {
		s.health.Recheck(name)
		return Stats{Abnormal: true, Message: fmt.Sprintf("the volume does not answer: %v", err)}, nil
	}
	if trouble := s.health.Problem(name); trouble != "" {
		return Stats{Usage: usage, Abnormal: true, Message: trouble}, nil
	}
	return Stats{Usage: usage, Message: "the volume answers"}, nil
}

// publishedAs returns the name of the stage whose volume is published at target.
func (s *Stager) publishedAs(ctx context.Context, v Volume, target string) (string, error) {
	unknown := fmt.Errorf("%w: provisioner %q, handle %q: not published at %q", ErrUnknownVolume, v.Driver, v.Handle, target)
	mounted, err := s.mounts.Mounted(ctx, target)
	if err != nil {
		return "", err
	}
	if !mounted {
		return "", unknown
	}
	shared, exclusive := s.names(v)
	for _, name := range []string{s.clientName(v, target), shared, exclusive} {
		publications, err := s.dirs.Publications(ctx, name)
		if err != nil {
			return "", err
		}
		for i := range publications {
			if publications[i].Target == target && publications[i].Same(s.boot) {
				return name, nil
			}
		}
	}
	return "", unknown
}
