package volume

import "sync"

// written keeps the number of pods that this agent has recorded last of each volume, so that an older
// ledger in the cache is told from the present one.
type written struct {
	mu   sync.Mutex
	pods map[string]int32 // by volume
}

func (w *written) note(volume string, pods int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods == nil {
		w.pods = map[string]int32{}
	}
	w.pods[volume] = pods
}

func (w *written) last(volume string) int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[volume]
}

func (w *written) forget(volume string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, volume)
}
