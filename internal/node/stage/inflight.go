package stage

import (
	"context"
	"slices"
	"sync"
	"time"
)

// inflight locks volumes and targets against concurrent calls: staging and unstaging exclude all other calls for the
// volume, publishing and unpublishing exclude only calls for the same target. No call waits for a lock: it returns
// ErrBusy, and kubelet calls again.
type inflight struct {
	mu        sync.Mutex
	exclusive map[string]bool
	shared    map[string][]string // targets by volume, in the order in which they were locked

	// preemptibles is the work that the agent does without a call, by volume: calls of kubelet take precedence.
	preemptibles map[string]map[*preemptible]struct{}
}

func newInflight() *inflight {
	return &inflight{exclusive: map[string]bool{}, shared: map[string][]string{}, preemptibles: map[string]map[*preemptible]struct{}{}}
}

// lockVolume locks a volume for one call. The returned function unlocks it.
func (f *inflight) lockVolume(volume string) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.exclusive[volume] || len(f.shared[volume]) > 0 {
		return nil, ErrBusy
	}
	f.exclusive[volume] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.exclusive, volume)
	}, nil
}

// lockTarget locks a target of a volume for one call. The returned function unlocks it.
func (f *inflight) lockTarget(volume, target string) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.exclusive[volume] || f.exclusive[target] {
		return nil, ErrBusy
	}
	f.exclusive[target] = true
	f.shared[volume] = append(f.shared[volume], target)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.exclusive, target)
		f.shared[volume] = slices.DeleteFunc(f.shared[volume], func(other string) bool { return other == target })
		if len(f.shared[volume]) == 0 {
			delete(f.shared, volume)
		}
	}, nil
}

// lockStages locks names of stages for one call, all of them or none. The returned function unlocks them.
func (f *inflight) lockStages(names ...string) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(names, func(name string) bool { return f.exclusive[name] }) {
		return nil, ErrBusy
	}
	for _, name := range names {
		f.exclusive[name] = true
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, name := range names {
			delete(f.exclusive, name)
		}
	}, nil
}

// first reports whether no other target of the volume was locked before this one. So one of several calls proceeds
// for a volume that may have only one target.
func (f *inflight) first(volume, target string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.shared[volume]) > 0 && f.shared[volume][0] == target
}

// preemptible is work that a call of kubelet can interrupt.
type preemptible struct {
	cancel context.CancelFunc
	over   chan struct{}
}

// preemptible returns a context for work that the agent does without a call. The context ends when a call for the
// volume arrives. The returned function must be called when the work has ended, and has released its locks.
func (f *inflight) preemptible(ctx context.Context, volume string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	mine := &preemptible{cancel: cancel, over: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.preemptibles[volume] == nil {
		f.preemptibles[volume] = map[*preemptible]struct{}{}
	}
	f.preemptibles[volume][mine] = struct{}{}
	return ctx, func() {
		cancel()
		close(mine.over)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.preemptibles[volume], mine)
		if len(f.preemptibles[volume]) == 0 {
			delete(f.preemptibles, volume)
		}
	}
}

// interrupt ends the agent's own work on the volume, and waits a moment until it has ended.
func (f *inflight) interrupt(ctx context.Context, volume string) {
	ctx, cancel := context.WithTimeout(ctx, preemptTimeout)
	defer cancel()
	f.mu.Lock()
	var found []*preemptible
	for y := range f.preemptibles[volume] {
		found = append(found, y)
	}
	f.mu.Unlock()
	for _, y := range found {
		y.cancel()
	}
	for _, y := range found {
		select {
		case <-y.over:
		case <-ctx.Done():
		}
	}
}

// preemptTimeout is how long a call of kubelet waits for the agent's own work to end; after that it returns ErrBusy.
const preemptTimeout = 5 * time.Second
