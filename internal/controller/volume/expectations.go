package volume

import "sync"

// expectations keeps, of each volume, the resource versions that this agent's own writes have replaced and
// that the cache may still show: a decision on one of them has been made before.
type expectations struct {
	mu       sync.Mutex
	replaced map[string]map[string]bool // by volume and version
}

// replace notes that a write has replaced a version by the next; the two are one where it changed nothing.
func (w *expectations) replace(volume, version, next string) {
	if version == next {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.replaced == nil {
		w.replaced = map[string]map[string]bool{}
	}
	if w.replaced[volume] == nil {
		w.replaced[volume] = map[string]bool{}
	}
	w.replaced[volume][version] = true
}

// isOld reports whether a version that the cache shows was replaced. If not, the cache has caught up.
func (w *expectations) isOld(volume, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.replaced[volume][version] {
		return true
	}
	delete(w.replaced, volume)
	return false
}

// forget forgets a volume that is gone.
func (w *expectations) forget(volume string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.replaced, volume)
}
