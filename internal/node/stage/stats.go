package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/albertofaria/pav/internal/mount"
)

// patience is how long a volume has to answer.
const patience = 5 * time.Second

// errSilent means that a volume did not answer in time.
var errSilent = errors.New("no answer within " + patience.String())

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
	bounded, cancel := context.WithTimeout(ctx, s.vitals.patience)
	defer cancel()
	name, err := s.publishedAs(bounded, v, path)
	if err != nil {
		return Stats{}, err
	}
	usage, err := s.vitals.look(bounded, name, path)
	if ctx.Err() != nil {
		return Stats{}, fmt.Errorf("%w: looking at the volume: %w", ErrPending, ctx.Err())
	}
	if err != nil {
		s.vitals.looked(name)
		return Stats{Abnormal: true, Message: fmt.Sprintf("the volume does not answer: %v", err)}, nil
	}
	if trouble := s.vitals.trouble(name); trouble != "" {
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

// Prober looks at volumes.
type Prober interface {
	// Probe returns how full the volume at path is. The error is mount.ErrDead where it will never answer
	// again. It may hang as long as the volume does, whatever becomes of ctx.
	Probe(ctx context.Context, path string) (mount.Usage, error)
}

// Probe implements Prober.
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

// glance is one look at a path.
type glance struct {
	began time.Time
	done  chan struct{}       // closed when the kernel has let go of it
	late  map[string]struct{} // the stages of those who have given up waiting
}

// look looks at the path at which the volume of a stage is. At most one look at a path is in the kernel
// at a time, or a hanging volume would cost a thread with each. The error is errSilent where the volume
// does not answer in time; when it does later, looked is called with the stage's name.
func (v *vitals) look(ctx context.Context, stage, path string) (mount.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, v.patience)
	defer cancel()
	mine := &glance{done: make(chan struct{}), late: map[string]struct{}{}}
	for {
		// What an earlier look sees may be from before what made the caller look.
		earlier := v.enter(path, mine)
		if earlier == nil {
			break
		}
		if v.now().Sub(earlier.began) >= v.patience || !over(ctx, earlier.done) {
			return mount.Usage{}, v.giveUp(path, earlier, stage)
		}
	}

	var usage mount.Usage
	var err error
	go func() {
		usage, err = v.prober.Probe(ctx, path)
		v.leave(path, mine)
	}()
	if !over(ctx, mine.done) {
		return mount.Usage{}, v.giveUp(path, mine, stage)
	}
	return usage, err
}

// over returns false where ctx ends before done is closed.
func over(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// enter notes a look at path, or returns the one that is going on.
func (v *vitals) enter(path string, mine *glance) (earlier *glance) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if earlier = v.glances[path]; earlier == nil {
		mine.began = v.now()
		v.glances[path] = mine
	}
	return earlier
}

// leave notes that the look at path is over.
func (v *vitals) leave(path string, mine *glance) {
	v.mu.Lock()
	delete(v.glances, path)
	late := mine.late
	close(mine.done)
	v.mu.Unlock()
	for stage := range late {
		v.looked(stage)
	}
}

// giveUp leaves word that the stage is to be looked at when the look is over.
func (v *vitals) giveUp(path string, g *glance, stage string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.glances[path] == g {
		g.late[stage] = struct{}{}
	}
	return errSilent
}
