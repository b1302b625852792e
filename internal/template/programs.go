package template

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxRemembered limits the cached definitions and constants, in bytes of source; compiled, they need many times as
// many.
const maxRemembered = 4 << 20

// programs caches compiled fields, each of the last generation that was requested. It is safe for concurrent use.
type programs struct {
	limit int

	mutex   sync.Mutex
	entries map[programKey]programEntry
	size    int
}

type programKey struct {
	object types.UID
	path   string
}

type programEntry struct {
	generation int64
	program    *Program
	size       int
}

func newPrograms(limit int) *programs {
	return &programs{limit: limit, entries: map[programKey]programEntry{}}
}

// get returns the compiled field, or nil if it is not remembered.
func (p *programs) get(f Field) *Program {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if entry := p.entries[programKey{f.Object, f.Path}]; entry.generation == f.Generation {
		return entry.program
	}
	return nil
}

// put caches a compiled field of size bytes instead of other generations of it. If the cache is full, it removes any
// fields.
func (p *programs) put(f Field, program *Program, size int) {
	if f.Object == "" || size > p.limit {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	key := programKey{f.Object, f.Path}
	p.forget(key)
	for other := range p.entries {
		if p.size+size <= p.limit {
			break
		}
		p.forget(other)
	}
	p.entries[key] = programEntry{generation: f.Generation, program: program, size: size}
	p.size += size
}

func (p *programs) forget(key programKey) {
	p.size -= p.entries[key].size
	delete(p.entries, key)
}
