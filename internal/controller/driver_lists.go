package controller

import (
	"slices"
	"strings"
	"sync"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keptLists is how many lists of drivers are kept to be shared.
const keptLists = 16

// driverLists lets CSINodes in the cache share their lists of drivers: nodes times drivers are many, and most nodes have the
// same drivers. Only the newest lists are kept, as lists change while drivers are registered, and then become the same.
type driverLists struct {
	mu     sync.Mutex
	newest [][]storagev1.CSINodeDriver
}

// trim removes from a CSINode everything that the reconcilers do not use. The drivers are sorted by name.
func (l *driverLists) trim(node *storagev1.CSINode) {
	drivers := node.Spec.Drivers
	slices.SortFunc(drivers, func(a, b storagev1.CSINodeDriver) int { return strings.Compare(a.Name, b.Name) })
	node.ObjectMeta = metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}
	node.Spec = storagev1.CSINodeSpec{Drivers: l.share(drivers)}
}

// share returns a list with the names of the drivers.
func (l *driverLists) share(drivers []storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range l.newest {
		if slices.EqualFunc(list, drivers, func(a, b storagev1.CSINodeDriver) bool { return a.Name == b.Name }) {
			return list
		}
	}
	list := make([]storagev1.CSINodeDriver, len(drivers))
	for i := range drivers {
		list[i].Name = drivers[i].Name
	}
	l.newest = append(l.newest[max(0, len(l.newest)-keptLists+1):], list)
	return list
}
