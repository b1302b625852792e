package reconcile

import "sync"

// Expectations remembers, for each object, the resource versions that this agent's own writes have replaced and that
// the cache may still show. A decision on one of them was made before. The zero value is ready for use.
type Expectations struct {
	mu       sync.Mutex
	replaced map[string]map[string]bool // by object and version
}

// Replace notes that a write has replaced a version by the next. They are equal if the write changed nothing.
func (e *Expectations) Replace(object, version, next string) {
	if version == next {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.replaced == nil {
		e.replaced = map[string]map[string]bool{}
	}
	if e.replaced[object] == nil {
		e.replaced[object] = map[string]bool{}
	}
	e.replaced[object][version] = true
}

// IsOld reports whether a version that the cache shows was replaced. If it was not, the cache has caught up.
func (e *Expectations) IsOld(object, version string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.replaced[object][version] {
		return true
	}
	delete(e.replaced, object)
	return false
}

// Forget forgets an object that is deleted.
func (e *Expectations) Forget(object string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.replaced, object)
}
