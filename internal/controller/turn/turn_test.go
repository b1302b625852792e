package turn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

type world struct {
	*Turns
	woken []string
}

func newWorld() *world {
	w := &world{}
	w.Turns = New(func(owner string) { w.woken = append(w.woken, owner) })
	return w
}

func (w *world) want(t *testing.T, owner string, keys []string, want bool) {
	t.Helper()
	if got := w.Take(owner, keys); got != want {
		t.Errorf("%s has its turn with %v: %t, want %t", owner, keys, got, want)
	}
}

func TestTake_AllKeysOrNone(t *testing.T) {
	w := newWorld()
	w.want(t, "one", []string{"a", "b"}, true)
	w.want(t, "one", []string{"a"}, true)
	w.want(t, "two", []string{"b", "c"}, false)
	w.want(t, "three", []string{"d"}, true)
	w.want(t, "four", []string{"c"}, false) // two has waited for it for longer
	w.Leave("one")
	if !slices.Equal(w.woken, []string{"two"}) {
		t.Errorf("woken: %v", w.woken)
	}
	w.want(t, "two", []string{"b", "c"}, true)
	w.Leave("two")
	if !slices.Equal(w.woken, []string{"two", "four"}) {
		t.Errorf("woken: %v", w.woken)
	}
	w.want(t, "four", []string{"c"}, true)
}

// One that gives up its place lets those behind it go on.
func TestLeave_OfOneThatWaits(t *testing.T) {
	w := newWorld()
	w.want(t, "one", []string{"a"}, true)
	w.want(t, "two", []string{"a", "b"}, false)
	w.want(t, "three", []string{"b"}, false)
	w.Leave("two")
	if !slices.Equal(w.woken, []string{"three"}) {
		t.Errorf("woken: %v", w.woken)
	}
	w.want(t, "three", []string{"b"}, true)
}

// The pods of an earlier agent run, anyone who has the turn by its rules.
func TestRestore(t *testing.T) {
	w := newWorld()
	w.Restore("one", []string{"a"})
	w.Restore("two", []string{"a"})
	w.want(t, "three", []string{"a"}, false)
	w.Restore("one", []string{"a"}) // again
	w.Leave("two")
	w.want(t, "three", []string{"a"}, false)
	w.Restore("two", []string{"a"})
	w.Leave("one")
	w.want(t, "three", []string{"a"}, false)
	w.Leave("two")
	w.want(t, "three", []string{"a"}, true)
}

// Never do two have a key, and nobody waits for ever.
func TestTurns_ByRandomCalls(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld()
		keys, has := map[string][]string{}, map[string]bool{}
		for i := range 8 {
			owner := fmt.Sprint(i)
			for _, key := range []string{"a", "b", "c", "d"} {
				if random.IntN(2) == 0 {
					keys[owner] = append(keys[owner], key)
				}
			}
		}
		owners := make([]string, 0, len(keys))
		for owner := range keys {
			owners = append(owners, owner)
		}
		slices.Sort(owners)
		for range 200 {
			owner := owners[random.IntN(len(owners))]
			if has[owner] {
				w.Leave(owner)
				has[owner] = false
				continue
			}
			has[owner] = w.Take(owner, keys[owner])
			for other := range has {
				if other != owner && has[other] && has[owner] && slices.ContainsFunc(keys[other], func(key string) bool { return slices.Contains(keys[owner], key) }) {
					t.Fatalf("seed %d: %s and %s have the same key", seed, owner, other)
				}
			}
		}
		// All that have turns end them; each that is woken takes its turn and ends it.
		served := map[string]bool{}
		for _, owner := range owners {
			if !has[owner] {
				has[owner] = w.Take(owner, keys[owner])
			}
		}
		for round := 0; len(served) < len(owners); round++ {
			if round > 2*len(owners) {
				t.Fatalf("seed %d: only %d of %d had their turn", seed, len(served), len(owners))
			}
			for _, owner := range owners {
				if has[owner] {
					has[owner], served[owner] = false, true
					w.Leave(owner)
				}
			}
			woken := w.woken
			w.woken = nil
			for _, owner := range woken {
				if !served[owner] && !has[owner] {
					has[owner] = w.Take(owner, keys[owner])
				}
			}
		}
	}
}

func TestIsAwaited(t *testing.T) {
	turns := New(func(string) {})
	turns.Take("a", []string{"x", "y"})
	if turns.IsAwaited("a") || turns.IsAwaited("nobody") {
		t.Error("nobody waits")
	}
	turns.Take("b", []string{"z"})
	turns.Take("c", []string{"z", "y"})
	if !turns.IsAwaited("a") || !turns.IsAwaited("b") || turns.IsAwaited("c") {
		t.Error("c waits for a and b, and nobody waits for c")
	}
	turns.Leave("c")
	if turns.IsAwaited("a") {
		t.Error("nobody waits any more")
	}
}
