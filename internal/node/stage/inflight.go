package stage

import (
	"context"
	"slices"
	"sync"
	"time"
)

// inflight keeps calls apart that must not run at once: staging and unstaging of a volume exclude
// each other and everything else on it, publishing and unpublishing exclude only what has their
// target. Nobody waits: who comes second answers ErrBusy, and kubelet calls again.
type inflight struct {
	mu        sync.Mutex
	exclusive map[string]bool
	shared    map[string][]string // targets by volume, in the order in which they were claimed

	// yielders are what the agent does by itself, by volume: kubelet's calls come first.
	yielders map[string]map[*preemptible]struct{}
}

func newInflight() *inflight {
	return &inflight{exclusive: map[string]bool{}, shared: map[string][]string{}, yielders: map[string]map[*preemptible]struct{}{}}
}

// lockVolume claims a volume for one call. The returned function gives it back.
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

// lockTarget claims a target of a volume for one call. The returned function gives it back.
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

// lockStages claims names of stages for one call, all of them or none. The returned function gives them back.
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

// first reports whether no call works on another target of the volume that was there before the target's, so
// that of several calls for a volume that may have one target only, one goes on.
func (f *inflight) first(volume, target string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.shared[volume]) > 0 && f.shared[volume][0] == target
}

// preemptible is something that gives way.
type preemptible struct {
	cancel context.CancelFunc
	over   chan struct{}
}

// preemptible returns a context that ends when a call about the volume must not wait for what the agent does
// by itself. The returned function is to be called when that is over, and has given back what it claimed.
func (f *inflight) preemptible(ctx context.Context, volume string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	mine := &preemptible{cancel: cancel, over: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.yielders[volume] == nil {
		f.yielders[volume] = map[*preemptible]struct{}{}
	}
	f.yielders[volume][mine] = struct{}{}
	return ctx, func() {
		cancel()
		close(mine.over)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.yielders[volume], mine)
		if len(f.yielders[volume]) == 0 {
			delete(f.yielders, volume)
		}
	}
}

// interrupt ends what the agent does by itself about the volume, and waits a moment until that is over.
func (f *inflight) interrupt(ctx context.Context, volume string) {
	ctx, cancel := context.WithTimeout(ctx, preemptTimeout)
	defer cancel()
	f.mu.Lock()
	var found []*preemptible
	for y := range f.yielders[volume] {
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

// preemptTimeout is how long kubelet's call waits for what gives way to it; after that it answers ErrBusy.
const preemptTimeout = 5 * time.Second
