package stage

import "sync"

// inflight keeps calls apart that must not run at once: staging and unstaging of a volume exclude
// each other and everything else on it, publishing and unpublishing exclude only what has their
// target. Nobody waits: who comes second answers ErrBusy, and kubelet calls again.
type inflight struct {
	mu        sync.Mutex
	exclusive map[string]bool
	shared    map[string]int
}

func newInflight() *inflight {
	return &inflight{exclusive: map[string]bool{}, shared: map[string]int{}}
}

// whole claims a volume for one call. The returned function gives it back.
func (f *inflight) whole(volume string) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.exclusive[volume] || f.shared[volume] > 0 {
		return nil, ErrBusy
	}
	f.exclusive[volume] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.exclusive, volume)
	}, nil
}

// part claims a target of a volume for one call. The returned function gives it back.
func (f *inflight) part(volume, target string) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.exclusive[volume] || f.exclusive[target] {
		return nil, ErrBusy
	}
	f.exclusive[target] = true
	f.shared[volume]++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.exclusive, target)
		if f.shared[volume]--; f.shared[volume] == 0 {
			delete(f.shared, volume)
		}
	}, nil
}
