package stage

import "sync"

// Notifier wakes the calls that wait for an event of a stage: a change of a pod, /pav/ready, the end of a mount. A
// call that is woken observes the stage again.
type Notifier struct {
	mu      sync.Mutex
	waiters map[string]map[chan struct{}]struct{}
}

// NewNotifier returns a Notifier without subscribers.
func NewNotifier() *Notifier {
	return &Notifier{waiters: map[string]map[chan struct{}]struct{}{}}
}

// Wake wakes the calls that wait for the stage. It never blocks.
func (h *Notifier) Wake(stage string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wake(h.waiters[stage])
}

// WakeAll wakes all calls, if it is not known which stage has changed. It never blocks.
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
		default: // It is about to observe the stage already.
		}
	}
}

// subscribe returns a channel that has an element if one of the stages was woken since the last receive. The returned
// function ends the subscription.
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
