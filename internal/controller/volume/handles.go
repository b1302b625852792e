package volume

import "sync"

// handleReservations prevents two volumes from getting the same handle before the cache has the record of either. It has
// only handles that were just recorded.
type handleReservations struct {
	mu    sync.Mutex
	taken map[string]string // handle to volume
}

// reserve reserves a handle for a volume, and returns the volume that has it: this one, or another.
func (h *handleReservations) reserve(handle, volume string) string {
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

// release releases the handle that a volume reserved: the cache has its record, or it will not be written.
func (h *handleReservations) release(volume string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for handle, holder := range h.taken {
		if holder == volume {
			delete(h.taken, handle)
		}
	}
}
