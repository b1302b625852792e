package provisioner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func nodeWith(drivers ...string) client.Object {
	node := &storagev1.CSINode{}
	for _, name := range drivers {
		node.Spec.Drivers = append(node.Spec.Drivers, storagev1.CSINodeDriver{Name: name})
	}
	return node
}

func TestNodes(t *testing.T) {
	n := nodes{known: map[string]int32{}}
	steps := []struct {
		name          string
		before, after client.Object
		changed       []string
		known         map[string]int32
	}{
		{name: "a node comes", after: nodeWith("a", "b", "c"), changed: []string{"a", "b", "c"}, known: map[string]int32{"a": 1, "b": 1, "c": 1}},
		{name: "another comes", after: nodeWith("a"), changed: []string{"a"}, known: map[string]int32{"a": 2, "b": 1, "c": 1}},
		{name: "drivers come and go", before: nodeWith("a", "b", "c"), after: nodeWith("b", "d"), changed: []string{"a", "c", "d"}, known: map[string]int32{"a": 1, "b": 1, "d": 1}},
		{name: "their order changes", before: nodeWith("b", "d"), after: nodeWith("d", "b"), known: map[string]int32{"a": 1, "b": 1, "d": 1}},
		{name: "a resync", before: nodeWith("d", "b"), after: nodeWith("d", "b"), known: map[string]int32{"a": 1, "b": 1, "d": 1}},
		{name: "a node goes", before: nodeWith("d", "b"), changed: []string{"b", "d"}, known: map[string]int32{"a": 1}},
		{name: "the last one goes", before: nodeWith("a"), changed: []string{"a"}, known: map[string]int32{}},
	}
	for _, step := range steps {
		changed := n.change(step.before, step.after)
		slices.Sort(changed)
		if diff := cmp.Diff(step.changed, changed, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: changed (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(step.known, n.known); diff != "" {
			t.Errorf("%s: known (-want +got):\n%s", step.name, diff)
		}
	}
	if n.of("a") != 0 {
		t.Error("a driver that no node knows is counted")
	}
}

// The handler of a node's event blocks all other events, so it must be fast.
func TestNodes_TakeTimeInProportion(t *testing.T) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("driver-%d", i)
	}
	n := nodes{known: map[string]int32{}}
	n.change(nil, nodeWith(names[1:]...))
	began := time.Now()
	changed := n.change(nodeWith(names[1:]...), nodeWith(names...))
	if took := time.Since(began); took > 10*time.Second { // a comparison of all pairs takes much longer
		t.Errorf("a driver that comes to %d takes %s", len(names), took)
	}
	if diff := cmp.Diff(names[:1], changed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
