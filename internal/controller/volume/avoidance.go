package volume

import (
	"slices"
	"sync"
	"time"
)

// avoidance remembers on which nodes pods have hung, so that the next pods of the same provisioner prefer
// others. It is kept by provisioner: one whose pods hang everywhere has no say in where others run. A new
// leader learns it from the pods that still hang.
type avoidance struct {
	mu   sync.Mutex
	hung map[string]map[string]time.Time // by provisioner and node, when a pod was last seen to hang
}

const (
	// avoidFor is for longer than the longest delay before the next attempt.
	avoidFor = 3 * longestDelay

	// mostAvoided bounds what a pod says about nodes. Where more are avoided, it is not the nodes' fault.
	mostAvoided = 16
)

// note remembers that a pod of a provisioner hangs on a node.
func (a *avoidance) note(provisioner, node string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hung == nil {
		a.hung = map[string]map[string]time.Time{}
	}
	if a.hung[provisioner] == nil {
		a.hung[provisioner] = map[string]time.Time{}
	}
	a.hung[provisioner][node] = now
}

// clear forgets that pods of a provisioner hung on a node before one started there.
func (a *avoidance) clear(provisioner, node string, started time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if hung, ok := a.hung[provisioner][node]; ok && started.After(hung) {
		a.drop(provisioner, node)
	}
}

// of returns the nodes that pods of a provisioner had better avoid, sorted; none where there are too many.
func (a *avoidance) of(provisioner string, now time.Time) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var nodes []string
	for node, hung := range a.hung[provisioner] {
		if now.Sub(hung) > avoidFor {
			a.drop(provisioner, node)
			continue
		}
		nodes = append(nodes, node)
	}
	if len(nodes) > mostAvoided {
		return nil
	}
	slices.Sort(nodes)
	return nodes
}

func (a *avoidance) drop(provisioner, node string) {
	delete(a.hung[provisioner], node)
	if len(a.hung[provisioner]) == 0 {
		delete(a.hung, provisioner)
	}
}
