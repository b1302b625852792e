package provisioner

import (
	"sync"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodes counts, of each driver, the nodes whose kubelets know it. It is kept by the events of CSINodes, as
// every provisioner's pass asks for it.
type nodes struct {
	mu    sync.Mutex
	known map[string]int32
}

// change notes that a node has become another one, and returns the drivers that it has more or less than
// before. Before is nil for a node that has come, and after for one that has gone.
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

// of returns how many nodes know a driver.
func (n *nodes) of(driver string) int32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[driver]
}

// drivers returns the set of drivers that a node's kubelet knows.
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
