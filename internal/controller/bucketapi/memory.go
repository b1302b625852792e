package bucketapi

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Memory has the objects that had a record: they are PaV's, even if the record and all else that says so are gone. Without it, such an
// object may be left with a finalizer. The zero value is ready for use.
type Memory struct {
	mu sync.Mutex
	of map[types.NamespacedName][]types.UID
}

// Has reports whether an object had a record.
func (m *Memory) Has(name types.NamespacedName, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.of[name], uid)
}

// Add remembers that an object had a record.
func (m *Memory) Add(name types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName][]types.UID{}
	}
	if !slices.Contains(m.of[name], uid) {
		m.of[name] = append(m.of[name], uid)
	}
}

// Keep forgets all objects of a name but those of which something is left.
func (m *Memory) Keep(name types.NamespacedName, left []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := slices.DeleteFunc(m.of[name], func(uid types.UID) bool { return !slices.Contains(left, uid) })
	if len(kept) == 0 {
		delete(m.of, name)
		return
	}
	m.of[name] = kept
}

// Len returns of how many names something is remembered.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.of)
}
