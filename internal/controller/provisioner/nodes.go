package provisioner

import (
	"sync"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodes counts, for each driver, the nodes on which it is registered. It is updated by the events of CSINodes, as
// every pass of a provisioner needs it.
type nodes struct {
	mu    sync.Mutex
	known map[string]int32
}

// change notes a change of a node, and returns the drivers that were added to it or removed from it. Before is nil
// for a new node, and after for a deleted one.
func (n *nodes) change(before, after client.Object) []string {
	had, has := drivers(before), drivers(after)
	n.mu.Lock()
	defer n.mu.Unlock()
	var changed []string
	for name := range had {
		if !has[name] {
			changed = append(changed, name)
			if n.known[name]--; n.known[name] == 0 {
				delete(n.known, name)
			}
		}
	}
	for name := range has {
		if !had[name] {
			changed = append(changed, name)
			n.known[name]++
		}
	}
	return changed
}

// of returns on how many nodes a driver is registered.
func (n *nodes) of(driver string) int32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[driver]
}

// drivers returns the set of drivers that are registered on a node.
func drivers(object client.Object) map[string]bool {
	node, ok := object.(*storagev1.CSINode)
	if !ok {
		return nil
	}
	names := make(map[string]bool, len(node.Spec.Drivers))
	for i := range node.Spec.Drivers {
		names[node.Spec.Drivers[i].Name] = true
	}
	return names
}
