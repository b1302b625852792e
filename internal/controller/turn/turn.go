// Package turn lets objects take turns with what they share: one mutating pod at a time works on a bucket. Its state is in memory, as
// one agent at a time leads. It never blocks: who has to wait is woken.
package turn

import (
	"slices"
	"sync"
)

// Turns gives the turns. It is safe for concurrent use.
type Turns struct {
	// Wake is called, without locks, for each owner that waited and may try again.
	Wake func(owner string)

	mu      sync.Mutex
	holders map[string][]string // by key; more than one only after Restore
	held    map[string][]string // keys by owner
	waiting map[string][]string // keys by owner
	order   []string            // the owners that wait, the first first
}

// New returns turns that nobody has.
func New(wake func(owner string)) *Turns {
	return &Turns{Wake: wake, holders: map[string][]string{}, held: map[string][]string{}, waiting: map[string][]string{}}
}

// Take reports whether the owner has its turn with all of the keys. If it has not, it holds none of them, and is woken when it may try
// again. No owner overtakes one that waits for the same key.
func (t *Turns) Take(owner string, keys []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if have, ok := t.held[owner]; ok && containsAll(have, keys) {
		return true
	}
	t.leave(owner)
	if t.isFree(owner, keys) {
		t.hold(owner, keys)
		return true
	}
	if _, ok := t.waiting[owner]; !ok {
		t.order = append(t.order, owner)
	}
	t.waiting[owner] = slices.Clone(keys)
	return false
}

// IsAwaited reports whether others wait for a key that the owner has.
func (t *Turns) IsAwaited(owner string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for waiter, keys := range t.waiting {
		if waiter != owner && slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(t.holders[key], owner) }) {
			return true
		}
	}
	return false
}

// Restore gives an owner its turn, also if another has it: its pod runs.
func (t *Turns) Restore(owner string, keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(owner)
	t.forget(owner)
	t.hold(owner, keys)
}

// Leave ends the turn of an owner, or its wait for one.
func (t *Turns) Leave(owner string) {
	t.mu.Lock()
	_, held := t.held[owner]
	_, waited := t.waiting[owner]
	t.leave(owner)
	t.forget(owner)
	var woken []string
	if held || waited {
		woken = t.next()
	}
	t.mu.Unlock()
	for _, owner := range woken {
		t.Wake(owner)
	}
}

// next returns the owners that wait and whose keys are free.
func (t *Turns) next() []string {
	var owners []string
	for _, owner := range t.order {
		if t.isFree(owner, t.waiting[owner]) {
			owners = append(owners, owner)
		}
	}
	return owners
}

// isFree reports whether nobody else has one of the keys, or has waited for one for longer.
func (t *Turns) isFree(owner string, keys []string) bool {
	for _, key := range keys {
		if slices.ContainsFunc(t.holders[key], func(holder string) bool { return holder != owner }) {
			return false
		}
	}
	for _, earlier := range t.order {
		if earlier == owner {
			break
		}
		if slices.ContainsFunc(t.waiting[earlier], func(key string) bool { return slices.Contains(keys, key) }) {
			return false
		}
	}
	return true
}

func (t *Turns) hold(owner string, keys []string) {
	for _, key := range keys {
		t.holders[key] = append(t.holders[key], owner)
	}
	t.held[owner] = slices.Clone(keys)
	t.forget(owner)
}

func (t *Turns) leave(owner string) {
	for _, key := range t.held[owner] {
		t.holders[key] = slices.DeleteFunc(t.holders[key], func(holder string) bool { return holder == owner })
		if len(t.holders[key]) == 0 {
			delete(t.holders, key)
		}
	}
	delete(t.held, owner)
}

// forget ends the wait of an owner.
func (t *Turns) forget(owner string) {
	delete(t.waiting, owner)
	t.order = slices.DeleteFunc(t.order, func(o string) bool { return o == owner })
}

func containsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(key string) bool { return !slices.Contains(have, key) })
}
