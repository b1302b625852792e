package stage

import (
	"context"
	"fmt"

	"github.com/albertofaria/pav/internal/mount"
)

// Stats is how full a published volume is, and how well.
type Stats struct {
	// Usage is how full it is; zero where the volume does not tell.
	Usage mount.Usage

	// Abnormal says that something is wrong with the volume, and Message what, or that nothing is.
	Abnormal bool
	Message  string
}

// Stats looks at a volume where it is published. It answers within seconds even where the volume never
// does. The error is ErrUnknownVolume where path is no target at which the volume is published.
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
