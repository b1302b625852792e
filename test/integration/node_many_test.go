package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

const (
	// manyAtOnce is how many calls are under way at the same time.
	manyAtOnce = 25

	// memoryOfMany is how much memory an agent may have that has manyVolumes of staged volumes.
	memoryOfMany = 150 << 20

	// heapOfOne is how much a staged volume may add to the agent's heap.
	heapOfOne = 128 << 10

	// idleWithin is how long it may take until the calls are over that follow the stagings.
	idleWithin = 20 * time.Minute

	// heapLeft is how much a volume that was unstaged may leave on the heap: its PersistentVolume, which is still there, in the
	// cache; its events, of which client-go remembers a few thousand; and the test's own list of the agent's writes.
	heapLeft = 8 << 10
)

// manyVolumes returns how many volumes are staged on a node, and for how long the agent must not grow then.
func manyVolumes() (count int, idle time.Duration) {
	if long() {
		return 1000, time.Hour
	}
	return 25, 0
}

// A node with many idle volumes: the agent's memory is small and does not grow, and nothing is left in the agent when they
// are gone.
func TestNode_ManyIdleVolumes(t *testing.T) {
	n := newNode(t, workers(t, newDevices(t)))
	a := n.run(t)
	count, idle := manyVolumes()
	first := n.volume(t, "made-first") // What is loaded once is loaded now.
	n.stage(t, first)
	n.unstage(t, first)
	before := a.Usage(t)

	var volumes []kubelet.Volume
	for i := range count {
		volumes = append(volumes, n.volume(t, fmt.Sprintf("made-%d", i)))
	}
	n.each(t, volumes, "staging", n.Stage)
	staged := whenIdle(t, a, before)
	t.Logf("with no volume: %+v; with %d: %+v", before, count, staged)
	if grown := staged.Heap - min(staged.Heap, before.Heap); grown > uint64(count)*heapOfOne {
		t.Errorf("%d volumes take %d bytes of the heap, want at most %d each", count, grown, heapOfOne)
	}
	if long() && staged.Resident > memoryOfMany { // The race detector, which the other runs have, takes more.
		t.Errorf("the agent has %d bytes of memory, want at most %d", staged.Resident, memoryOfMany)
	}
	n.wantFlat(t, a, staged, idle)

	n.each(t, volumes, "unstaging", n.Unstage)
	for _, v := range volumes {
		n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
	}
	n.checkLeft(t)
	eventually(t, "the volumes have left nothing behind", func(context.Context) (bool, string) {
		after := a.Usage(t)
		return after.Goroutines <= before.Goroutines+3 && after.Descriptors <= before.Descriptors+3 && after.Heap <= before.Heap+4<<20+uint64(count)*heapLeft,
			fmt.Sprintf("before: %+v; after: %+v", before, after)
	})
}

// whenIdle returns the agent's usage when no call is under way any more. Kubelet still takes /pav from staging pods for a while
// after their volumes are staged; each of these calls reads the mount table, to which each volume adds.
func whenIdle(t *testing.T, a *kubelet.Agent, before kubelet.Usage) kubelet.Usage {
	t.Helper()
	var is kubelet.Usage
	err := wait.PollUntilContextTimeout(lasting(t), 2*time.Second, idleWithin, true, func(context.Context) (bool, error) {
		is = a.Usage(t)
		return is.Goroutines <= before.Goroutines+10 && is.Descriptors <= before.Descriptors+10, nil
	})
	if err != nil {
		t.Fatalf("calls are still under way after %s: before: %+v; now: %+v", idleWithin, before, is)
	}
	return is
}

// each makes a call for each of many volumes, some at the same time, until it succeeds.
func (n *node) each(t *testing.T, volumes []kubelet.Volume, what string, call func(context.Context, kubelet.Volume) error) {
	t.Helper()
	todo := make(chan kubelet.Volume)
	var callers sync.WaitGroup
	for range manyAtOnce {
		callers.Go(func() {
			for v := range todo {
				ctx, end := context.WithTimeout(lasting(t), deadline)
				errs := n.Until(ctx, func(ctx context.Context) error { return call(ctx, v) })
				end()
				if err := errs[len(errs)-1]; err != nil {
					t.Errorf("%s of %s: %v", what, v.Handle, err)
				}
			}
		})
	}
	for _, v := range volumes {
		todo <- v
	}
	close(todo)
	callers.Wait()
}

// wantFlat looks at an idle agent now and then, for so long, and fails the test where it grows.
func (n *node) wantFlat(t *testing.T, a *kubelet.Agent, was kubelet.Usage, idle time.Duration) {
	t.Helper()
	for end := time.Now().Add(idle); time.Now().Before(end) && !t.Failed(); {
		select {
		case <-a.Ended():
			t.Fatal("the agent has ended")
		case <-time.After(idle / 60):
		}
		is := a.Usage(t)
		if is.Goroutines > was.Goroutines+10 || is.Descriptors > was.Descriptors+10 || is.Heap > was.Heap+was.Heap/4 {
			t.Errorf("the idle agent grew from %+v to %+v", was, is)
		}
	}
}
