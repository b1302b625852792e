package pavdir

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/albertofaria/pav/internal/mount"
)

const (
	// maxSyncs is how many volumes may be synchronized at once. Each costs a thread, which a volume that hangs keeps.
	maxSyncs = 64

	// longestSync is for how long Detach waits for the end of a synchronization, from its beginning. It is as long as the
	// controller agent waits for it.
	longestSync = 5 * time.Minute
)

// errTooManySyncs means that a volume was not synchronized because too many others have not ended.
var errTooManySyncs = errors.New("too many volumes of the node are being written back, or hang")

// Sync writes to the storage what the node has in memory of the volume that is attached for clients of the stage. It works
// on what was opened once when the volume was attached, and which is mounted where no pod can change it, and not on
// /pav/volume, where the staging pod may meanwhile have something else.
//
// If ctx ends first, Sync returns its error, and the work goes on. Until it ends, the error of further calls is
// mount.ErrHangs, at once. The error is mount.ErrNotMounted if no volume is attached, or it is being detached.
func (d *Directories) Sync(ctx context.Context, stage string) error {
	end, err := d.syncs.begin(stage)
	if err != nil {
		return fmt.Errorf("synchronizing the volume of stage %q: %w", stage, err)
	}
	result := make(chan error, 1)
	go func() {
		// Detach must know when the kernel has released the volume, not when ctx ends.
		err := d.host.Do(context.WithoutCancel(ctx), func() error { return mount.Sync(d.Volume(stage)) })
		end()
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("synchronizing the volume of stage %q: %w", stage, ctx.Err())
	}
}

// syncs are the synchronizations of volumes that have not ended. A volume that is being synchronized is open, so that its
// file system would outlive the unstaging, and might be written to while another node has it.
type syncs struct {
	mu        sync.Mutex
	running   map[string]runningSync // by stage
	detaching map[string]int         // how many calls detach the volume of a stage
}

func newSyncs() *syncs {
	return &syncs{running: map[string]runningSync{}, detaching: map[string]int{}}
}

type runningSync struct {
	began time.Time
	done  chan struct{} // closed at its end
}

// begin registers the synchronization of a stage's volume. The returned function must be called at its end.
func (s *syncs) begin(stage string) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, runs := s.running[stage]
	switch {
	case runs:
		return nil, mount.ErrHangs
	case s.detaching[stage] > 0:
		return nil, mount.ErrNotMounted
	case len(s.running) >= maxSyncs:
		return nil, errTooManySyncs
	}
	mine := runningSync{began: time.Now(), done: make(chan struct{})}
	s.running[stage] = mine
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, stage)
		close(mine.done)
	}, nil
}

// prevent keeps synchronizations of a stage's volume from beginning, until the returned function is called.
func (s *syncs) prevent(stage string) (allow func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detaching[stage]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.detaching[stage]--; s.detaching[stage] == 0 {
			delete(s.detaching, stage)
		}
	}
}

// wait waits for the end of the synchronization of a stage's volume, unless it takes too long: then it hangs. The error is
// that of ctx.
func (s *syncs) wait(ctx context.Context, stage string) error {
	s.mu.Lock()
	running, runs := s.running[stage]
	s.mu.Unlock()
	if !runs {
		return nil
	}
	timer := time.NewTimer(time.Until(running.began.Add(longestSync)))
	defer timer.Stop()
	select {
	case <-running.done:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting until the volume of stage %q is written back: %w", stage, ctx.Err())
	}
}
