package controller

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDriverLists_AreSharedByNodesWithTheSameDrivers(t *testing.T) {
	l := &driverLists{}
	node := func(name string, drivers ...string) *storagev1.CSINode {
		n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"}}}
		for _, driver := range drivers {
			n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: name, TopologyKeys: []string{"zone"}})
		}
		l.trim(n)
		return n
	}
	first, same, other, none := node("a", "x", "y"), node("b", "y", "x"), node("c", "x"), node("d")
	want := &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "u", ResourceVersion: "7"},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "x"}, {Name: "y"}}},
	}
	if diff := cmp.Diff(want, same); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if &first.Spec.Drivers[0] != &same.Spec.Drivers[0] {
		t.Error("the same drivers have two lists")
	}
	if len(other.Spec.Drivers) != 1 || len(none.Spec.Drivers) != 0 {
		t.Errorf("other drivers: got %v and %v", other.Spec.Drivers, none.Spec.Drivers)
	}
	for i := range 10 * keptLists {
		node("changing", fmt.Sprint(i))
	}
	if len(l.newest) != keptLists {
		t.Errorf("%d lists are kept, want %d", len(l.newest), keptLists)
	}
}
