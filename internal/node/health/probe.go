package health

import (
	"context"
	"errors"
	"time"

	"github.com/albertofaria/pav/internal/mount"
)

// answerTimeout is how long a volume may take to answer.
const answerTimeout = 5 * time.Second

// ErrNoAnswer means that a volume did not answer in time.
var ErrNoAnswer = errors.New("no answer within " + answerTimeout.String())

// Prober checks whether volumes answer.
type Prober interface {
	// Probe returns the usage of the volume at path. The error is mount.ErrDead if the volume will never answer
	// again. Probe may hang as long as the volume does, even after ctx has ended.
	Probe(ctx context.Context, path string) (mount.Usage, error)
}

// pendingProbe is a probe of a path that has not returned.
type pendingProbe struct {
	began time.Time
	done  chan struct{}       // closed when the probe has returned
	late  map[string]struct{} // the stages of callers that no longer wait
}

// Probe checks whether the volume of a stage, which is at path, answers. At most one probe of a path runs at a time,
// as each probe of a volume that hangs blocks a thread. The error is ErrNoAnswer if the volume does not answer within
// the timeout; when it answers later, the stage is rechecked.
func (t *Tracker) Probe(ctx context.Context, stage, path string) (mount.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	mine := &pendingProbe{done: make(chan struct{}), late: map[string]struct{}{}}
	for {
		// An earlier probe may have seen the volume before the change that made the caller probe it.
		earlier := t.enter(path, mine)
		if earlier == nil {
			break
		}
		if t.now().Sub(earlier.began) >= t.Timeout || !isDone(ctx, earlier.done) {
			return mount.Usage{}, t.giveUp(path, earlier, stage)
		}
	}

	var usage mount.Usage
	var err error
	go func() {
		usage, err = t.prober.Probe(ctx, path)
		t.leave(path, mine)
	}()
	if !isDone(ctx, mine.done) {
		return mount.Usage{}, t.giveUp(path, mine, stage)
	}
	return usage, err
}

// isDone waits for done or the end of ctx, and reports whether done was closed.
func isDone(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// enter registers a probe of a path, or returns the one that is running.
func (t *Tracker) enter(path string, mine *pendingProbe) (earlier *pendingProbe) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if earlier = t.pending[path]; earlier == nil {
		mine.began = t.now()
		t.pending[path] = mine
	}
	return earlier
}

// leave ends a probe, and rechecks the stages whose callers did not wait for it.
func (t *Tracker) leave(path string, mine *pendingProbe) {
	t.mu.Lock()
	delete(t.pending, path)
	late := mine.late
	close(mine.done)
	t.mu.Unlock()
	for stage := range late {
		t.recheck(stage)
	}
}

// giveUp registers the stage to be rechecked when the probe returns.
func (t *Tracker) giveUp(path string, running *pendingProbe, stage string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending[path] == running {
		running.late[stage] = struct{}{}
	}
	return ErrNoAnswer
}
