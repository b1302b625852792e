package obc

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// memory is what this process knows of a claim besides the objects of the cluster. Without it, something is written once more.
type memory struct {
	// ours says that the claim had a record, or an ObjectBucket of PaV: it is PaV's, even if these and all else that says so are gone.
	ours bool

	// written is the hash of what the ConfigMap has, and removed says that it is deleted.
	written string
	removed bool

	// copied is when the claim was last copied.
	copied time.Time
}

// memories has the memory of each claim. The zero value is ready for use.
type memories struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[types.UID]memory
}

// get returns the memory of a claim.
func (m *memories) get(name types.NamespacedName, uid types.UID) memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[name][uid]
}

// change changes the memory of a claim.
func (m *memories) change(name types.NamespacedName, uid types.UID, change func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of[name][uid]
	change(&known)
	if m.of == nil {
		m.of = map[types.NamespacedName]map[types.UID]memory{}
	}
	if m.of[name] == nil {
		m.of[name] = map[types.UID]memory{}
	}
	m.of[name][uid] = known
}

// keep forgets all claims of a name but those of which something is left.
func (m *memories) keep(name types.NamespacedName, left []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid := range m.of[name] {
		if !slices.Contains(left, uid) {
			delete(m.of[name], uid)
		}
	}
	if len(m.of[name]) == 0 {
		delete(m.of, name)
	}
}
