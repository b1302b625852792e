package cosi1

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory has the objects that had a record: they are PaV's, even if the record and all else that says so are gone. Without it, such an
// object may be left with a finalizer. The zero value is ready for use.
type memory struct {
	mu sync.Mutex
	of map[types.NamespacedName][]types.UID
}

// has reports whether an object had a record.
func (m *memory) has(name types.NamespacedName, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.of[name], uid)
}

// add remembers that an object had a record.
func (m *memory) add(name types.NamespacedName, uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[types.NamespacedName][]types.UID{}
	}
	if !slices.Contains(m.of[name], uid) {
		m.of[name] = append(m.of[name], uid)
	}
}

// keep forgets all objects of a name but those of which something is left.
func (m *memory) keep(name types.NamespacedName, left []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := slices.DeleteFunc(m.of[name], func(uid types.UID) bool { return !slices.Contains(left, uid) })
	if len(kept) == 0 {
		delete(m.of, name)
		return
	}
	m.of[name] = kept
}
