package attempt

import (
	"slices"
	"sync"
	"time"

	"github.com/albertofaria/pav/internal/workflow"
)

// hungNodes remembers the nodes on which pods hung, so that the next pods of the same provisioner prefer other nodes.
// Each provisioner has its own: one whose pods hang everywhere must not move the pods of others. A new leader learns
// the nodes from pods that still hang.
type hungNodes struct {
	mu    sync.Mutex
	nodes map[string]map[string]time.Time // by provisioner and node: when a pod was last seen to hang
}

const (
	// avoidFor is longer than the longest delay before the next attempt.
	avoidFor = 3 * workflow.LongestRetryDelay

	// mostAvoided limits the size of a pod's affinity. If more nodes are to be avoided, the nodes are not the cause.
	mostAvoided = 16
)

// note remembers that a pod of a provisioner hangs on a node.
func (h *hungNodes) note(provisioner, node string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes == nil {
		h.nodes = map[string]map[string]time.Time{}
	}
	if h.nodes[provisioner] == nil {
		h.nodes[provisioner] = map[string]time.Time{}
	}
	h.nodes[provisioner][node] = now
}

// clear forgets a node if a pod of the provisioner has started there after the last one hung.
func (h *hungNodes) clear(provisioner, node string, started time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hung, ok := h.nodes[provisioner][node]; ok && started.After(hung) {
		h.drop(provisioner, node)
	}
}

// of returns the nodes that pods of a provisioner should avoid, sorted; none if there are too many.
func (h *hungNodes) of(provisioner string, now time.Time) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var nodes []string
	for node, hung := range h.nodes[provisioner] {
		if now.Sub(hung) > avoidFor {
			h.drop(provisioner, node)
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

func (h *hungNodes) drop(provisioner, node string) {
	delete(h.nodes[provisioner], node)
	if len(h.nodes[provisioner]) == 0 {
		delete(h.nodes, provisioner)
	}
}
