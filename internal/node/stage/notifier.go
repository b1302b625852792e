package stage

import "sync"

// Notifier wakes the calls that wait for something about a stage: a pod's change, /pav/ready, the end of
// a mount. A wake-up says only that it is worth looking again.
type Notifier struct {
	mu      sync.Mutex
	waiters map[string]map[chan struct{}]struct{}
}

// NewNotifier returns a Notifier without subscribers.
func NewNotifier() *Notifier {
	return &Notifier{waiters: map[string]map[chan struct{}]struct{}{}}
}

// Wake wakes whoever waits for the stage. It never blocks.
func (h *Notifier) Wake(stage string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wake(h.waiters[stage])
}

// WakeAll wakes everybody, where it cannot be told which stage has changed. It never blocks.
func (h *Notifier) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, waiters := range h.waiters {
		wake(waiters)
	}
}

func wake(waiters map[chan struct{}]struct{}) {
	for waiter := range waiters {
		select {
		case waiter <- struct{}{}:
		default: // It is about to look already.
		}
	}
}

// subscribe returns a channel that has an element when one of the stages was woken since the last
// receive. The returned function ends that.
func (h *Notifier) subscribe(stages ...string) (<-chan struct{}, func()) {
	waiter := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, stage := range stages {
		if h.waiters[stage] == nil {
			h.waiters[stage] = map[chan struct{}]struct{}{}
		}
		h.waiters[stage][waiter] = struct{}{}
	}
	return waiter, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, stage := range stages {
			delete(h.waiters[stage], waiter)
			if len(h.waiters[stage]) == 0 {
				delete(h.waiters, stage)
			}
		}
	}
}
