package reconcile

import "sync"

// Reservations prevents two objects from getting the same handle before the cache has the record of either. It has only handles that
// were just recorded. The zero value is ready for use.
type Reservations struct {
	mu    sync.Mutex
	taken map[string]string // handle to volume
}

// Reserve reserves a handle for a volume, and returns the volume that has it: this one, or another.
func (h *Reservations) Reserve(handle, volume string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if holder, ok := h.taken[handle]; ok {
		return holder
	}
	if h.taken == nil {
		h.taken = map[string]string{}
	}
	h.taken[handle] = volume
	return volume
}

// Release releases the handle that a volume reserved: the cache has its record, or it will not be written.
func (h *Reservations) Release(volume string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for handle, holder := range h.taken {
		if holder == volume {
			delete(h.taken, handle)
		}
	}
}
