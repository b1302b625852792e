package attempt

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/internal/controller/queue"
)

func TestHungNodes(t *testing.T) {
	h := &hungNodes{}
	expect := func(what, provisioner string, later time.Duration, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, h.of(provisioner, noon.Add(later))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("no pod hung", "demo", 0)
	h.note("demo", "n2", noon)
	h.note("demo", "n1", noon)
	expect("pods hung on both nodes", "demo", time.Minute, "n1", "n2")
	expect("another provisioner", "other", time.Minute)
	h.clear("demo", "n1", noon.Add(-time.Second))
	expect("a pod started before one hung", "demo", time.Minute, "n1", "n2")
	h.clear("demo", "n1", noon.Add(time.Second))
	expect("a pod started after one hung", "demo", time.Minute, "n2")
	expect("just before it expires", "demo", avoidFor, "n2")
	expect("after it expires", "demo", avoidFor+time.Second)
	for i := range mostAvoided + 1 {
		h.note("demo", fmt.Sprint("m", i), noon)
	}
	expect("too many nodes", "demo", 0)
	if h.of("demo", noon.Add(avoidFor+1)); len(h.nodes) > 0 {
		t.Errorf("nodes are remembered after they expire: %v", h.nodes)
	}
}

func TestSync(t *testing.T) {
	demo := Owner{Name: "volume", Provisioner: "demo", Namespace: "default"}
	tests := map[string]struct {
		state *state
		want  queue.Counts
		avoid []string
	}{
		"no pod":                            {state: &state{Attempt{Now: noon}}},
		"an intended pod keeps its turn":    {state: intended(), want: queue.Counts{Running: 1}},
		"a pod that starts":                 {state: intended().pod(1), want: queue.Counts{Running: 1}},
		"a pod that runs":                   {state: intended().pod(99, running), want: queue.Counts{Running: 1}},
		"a pod that cannot start":           {state: intended().pod(5, imageFails), want: queue.Counts{Suspended: 1}},
		"a pod that hangs":                  {state: intended().pod(31, mountFails), want: queue.Counts{Suspended: 1}, avoid: []string{"n1"}},
		"a pod that is being deleted":       {state: intended().pod(31, running, deleted(1, 0)), want: queue.Counts{Running: 1}},
		"a pod whose node may be lost":      {state: intended().pod(31, running, deleted(20, 0))},
		"a hung pod whose node may be lost": {state: intended().pod(31, mountFails, deleted(20, 0)), avoid: []string{"n1"}},
		"a pod that is over":                {state: intended().pod(31, ended("Succeeded", 1))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pool := NewPool(queue.Limits{})
			slots := pool.Of("volume", func(string) {})
			slots.Acquire(demo)
			slots.Sync(demo, test.state.Attempt)
			if diff := cmp.Diff(test.want, pool.All()["demo"]); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.avoid, slots.Avoid("demo", noon)); diff != "" {
				t.Errorf("avoided nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPool_KindsShareSlots(t *testing.T) {
	pool := NewPool(queue.Limits{PerProvisioner: 1})
	var woken []string
	volumes := pool.Of("volume", func(name string) { woken = append(woken, "volume "+name) })
	snapshots := pool.Of("snapshot", func(name string) { woken = append(woken, "snapshot "+name) })
	demo := Owner{Name: "a/b", Provisioner: "demo", Namespace: "default"} // one name for both
	if !volumes.Acquire(demo) {
		t.Fatal("the volume has no slot")
	}
	if snapshots.Acquire(demo) {
		t.Fatal("a snapshot of the same name has a slot, with a limit of 1")
	}
	if diff := cmp.Diff(map[string]queue.Counts{"demo": {Running: 1, Waiting: 1}}, pool.All()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	volumes.Release(demo.Name)
	if diff := cmp.Diff([]string{"snapshot a/b"}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if !snapshots.Acquire(demo) {
		t.Error("the snapshot does not have the slot that it was woken for")
	}
}

func TestPool_KindsShareHungNodes(t *testing.T) {
	pool := NewPool(queue.Limits{})
	volumes, snapshots := pool.Of("volume", func(string) {}), pool.Of("snapshot", func(string) {})
	volumes.Sync(Owner{Name: "volume", Provisioner: "demo", Namespace: "default"}, intended().pod(31, mountFails).Attempt)
	if diff := cmp.Diff([]string{"n1"}, snapshots.Avoid("demo", noon)); diff != "" {
		t.Errorf("avoided nodes (-want +got):\n%s", diff)
	}
}
