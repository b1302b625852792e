package volume

import "sync"

// handleReservations keeps two volumes from being given one handle while neither record of it has reached the
// cache. It holds only the handles of passes that have just recorded them.
type handleReservations struct {
	mu    sync.Mutex
	taken map[string]string // handle to volume
}

// reserve reserves a handle for a volume and returns the volume that has it: another one, or this.
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

// release gives back what a volume reserved: its record is in the cache, or will not be written.
func (h *handleReservations) release(volume string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for handle, holder := range h.taken {
		if holder == volume {
			delete(h.taken, handle)
		}
	}
}
