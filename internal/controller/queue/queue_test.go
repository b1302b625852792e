package queue

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorder is a queue that records which volumes it has woken since the last check.
type recorder struct {
	*Queue
	woken []string
}

func newRecorder(overall, perProvisioner int) *recorder {
	r := &recorder{}
	r.Queue = New(Limits{Overall: overall, PerProvisioner: perProvisioner}, func(volume string) { r.woken = append(r.woken, volume) })
	return r
}

func (r *recorder) take(t *testing.T, volume, provisioner string, want bool) {
	t.Helper()
	if got := r.Acquire(volume, provisioner, "default"); got != want {
		t.Fatalf("taking %s of %s: got %t, want %t", volume, provisioner, got, want)
	}
}

func (r *recorder) wakes(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, r.woken); diff != "" {
		t.Fatalf("woken (-want +got):\n%s", diff)
	}
	r.woken = nil
}

func TestAcquire_GrantsSlotsUpToTheLimits_AndAgainToAHolder(t *testing.T) {
	r := newRecorder(3, 2)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", true)
	r.take(t, "a3", "a", false)
	r.take(t, "b1", "b", true)
	r.take(t, "b2", "b", false)
	r.take(t, "a1", "a", true)
	r.take(t, "a3", "a", false)
	r.wakes(t)
	if r.Running() != 3 || r.Waiting() != 2 {
		t.Errorf("%d run and %d wait", r.Running(), r.Waiting())
	}
	if diff := cmp.Diff(Counts{Running: 2, Waiting: 1}, r.Of("a")); diff != "" {
		t.Errorf("counts of a (-want +got):\n%s", diff)
	}
}

func TestRelease_WakesTheNextOfTheProvisionerWithTheReservedSlot(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", false)
	r.take(t, "a3", "a", false)
	r.Release("a1")
	r.wakes(t, "a2")
	r.take(t, "a3", "a", false)
	r.take(t, "a1", "a", false)
	r.take(t, "a2", "a", true)
	r.Release("a2")
	r.wakes(t, "a3")
	// a3 does not use the slot that is reserved for it.
	r.Release("a3")
	r.wakes(t, "a1")
	r.take(t, "a1", "a", true)
}

func TestRelease_OfAQueuedVolume_MovesTheOthersUp(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", false)
	r.take(t, "b1", "b", false)
	r.Release("a2")
	r.Release("a2")
	r.Release("unknown")
	r.wakes(t)
	r.Release("a1")
	r.wakes(t, "b1")
}

func TestRelease_ByAProvisionerAtItsLimit_SkipsThoseWithoutRoom(t *testing.T) {
	r := newRecorder(3, 2)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", true)
	r.take(t, "a3", "a", false)
	r.take(t, "b1", "b", true)
	r.take(t, "c1", "c", false)
	r.Release("b1")
	r.wakes(t, "c1")
	r.Release("c1")
	r.wakes(t)
	r.Release("a1")
	r.wakes(t, "a3")
}

func TestSuspend_MakesRoom_UpToTheLimitOfTheProvisioner(t *testing.T) {
	r := newRecorder(2, 2)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", true)
	r.take(t, "a3", "a", false)
	r.take(t, "a4", "a", false)
	r.take(t, "b1", "b", false)
	r.Suspend("a1")
	r.Suspend("a1")
	r.Suspend("b2")
	r.wakes(t, "a3")
	r.Suspend("a2")
	r.wakes(t, "b1")
	r.Release("b1")
	r.wakes(t)
	r.take(t, "a1", "a", true)
	if diff := cmp.Diff(Counts{Running: 1, Suspended: 2, Waiting: 1}, r.Of("a")); diff != "" {
		t.Errorf("counts of a (-want +got):\n%s", diff)
	}

	r.Resume("a1")
	r.Resume("a1")
	r.Resume("b1")
	r.wakes(t)
	r.Resume("a2")
	if r.Running() != 3 {
		t.Errorf("%d run, want 3: above the limit, as all have started", r.Running())
	}
	r.Release("a1")
	r.wakes(t)
	r.Release("a3")
	r.wakes(t, "a4")
}

func TestResume_MakesRoom_IfOnlySuspendedSlotsWereInTheWay(t *testing.T) {
	r := newRecorder(4, 2)
	for _, volume := range []string{"a1", "a2"} {
		r.take(t, volume, "a", true)
		r.Suspend(volume)
	}
	r.take(t, "a3", "a", false)
	r.Resume("a1")
	r.wakes(t, "a3")
}

// A provisioner without a slot gets one, no matter how many pods of other provisioners cannot start.
func TestAcquire_ForAProvisionerWithoutASlot_IsTrue_WithAnyNumberOfSuspendedSlots(t *testing.T) {
	r := newRecorder(2, 2)
	pods := 0
	for number := range 50 {
		provisioner := fmt.Sprint("broken", number)
		for r.Acquire(fmt.Sprint(provisioner, "-", pods), provisioner, "default") {
			r.Suspend(fmt.Sprint(provisioner, "-", pods))
			pods++
		}
	}
	if pods != 2*2+48 {
		t.Errorf("%d pods that cannot start, want twice the limit and one of each further provisioner", pods)
	}
	r.take(t, "healthy1", "healthy", true)
	r.take(t, "healthy2", "healthy", false)
	r.Release("healthy1")
	r.wakes(t, "healthy2")
}

// A namespace without a slot gets one as well, up to a limit.
func TestAcquire_ForANamespaceWithoutASlot_IsTrue_UpToThreeTimesTheLimit(t *testing.T) {
	r := newRecorder(2, 2)
	pods := 0
	for number := range 50 {
		volume := fmt.Sprint("a", number)
		if !r.Acquire(volume, "a", fmt.Sprint("tenant", number)) {
			break
		}
		r.Suspend(volume)
		pods++
	}
	if pods != 3*2 {
		t.Errorf("%d pods that cannot start, want three times the limit", pods)
	}
	r.take(t, "b1", "b", true)
}

func TestAcquire_ReservesATenthForProvisionersWithoutRunningPods(t *testing.T) {
	r := newRecorder(10, 10)
	for number := range 9 {
		r.take(t, fmt.Sprint("a", number), fmt.Sprint("a", number%3), true)
	}
	r.take(t, "a9", "a0", false)
	r.take(t, "b1", "b", true)
	r.take(t, "c1", "c", false)
	r.Release("a0")
	r.wakes(t, "c1")
	r.Release("a1")
	r.wakes(t) // the free slot is kept for a provisioner that has none
	r.Release("a2")
	r.wakes(t, "a9")
}

func TestAcquire_ReservesATenthOfAProvisionersSlotsForNamespacesWithoutRunningPods(t *testing.T) {
	r := newRecorder(100, 10)
	for number := range 4000 {
		if got, want := r.Acquire(fmt.Sprint("greedy", number), "a", "greedy"), number < 9; got != want {
			t.Fatalf("volume %d: got %t, want %t", number, got, want)
		}
	}
	if !r.Acquire("modest", "a", "modest") {
		t.Error("a single claim waits for those of another namespace")
	}
}

func TestRelease_ServesTheNamespacesOfAProvisionerInTurn(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "first", "a", true)
	for _, volume := range []string{"x1", "x2", "x3", "y1", "z1", "z2"} {
		if r.Acquire(volume, "a", volume[:1]) {
			t.Fatalf("%s has a place above the limit", volume)
		}
	}
	r.Release("first")
	for range 5 {
		r.Release(r.woken[len(r.woken)-1])
	}
	r.wakes(t, "x1", "y1", "z1", "x2", "z2", "x3")
}

func TestSuspend_OfAQueuedVolume_HasNoEffect(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", false)
	r.Suspend("a2")
	r.Resume("a2")
	r.Release("a1")
	r.wakes(t, "a2")
}

func TestRelease_OfASuspendedSlot_GivesItsProvisionerRoom(t *testing.T) {
	r := newRecorder(2, 1)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", false)
	r.Suspend("a1")
	r.wakes(t)
	r.Release("a1")
	r.wakes(t, "a2")
}

func TestRestore_CountsAboveTheLimits(t *testing.T) {
	r := newRecorder(1, 1)
	r.Restore("a1", "a", "default")
	r.Restore("a2", "a", "default")
	r.Restore("a2", "a", "default")
	r.take(t, "a1", "a", true)
	r.take(t, "a3", "a", false)
	r.take(t, "a4", "a", false)
	r.Restore("a4", "a", "default")
	if r.Running() != 3 || r.Waiting() != 1 {
		t.Errorf("%d run and %d wait", r.Running(), r.Waiting())
	}
	r.Release("a1")
	r.Release("a2")
	r.wakes(t)
	r.Release("a4")
	r.wakes(t, "a3")
}

func TestContended_OnlyIfPodsThatCannotStartAreTheReason(t *testing.T) {
	r := newRecorder(3, 1)
	expect := func(reason, provisioner string, want bool) {
		t.Helper()
		if got := r.Contended(provisioner); got != want {
			t.Errorf("%s: got %t", reason, got)
		}
	}
	expect("unknown", "a", false)
	r.take(t, "a1", "a", true)
	expect("no volume waits", "a", false)
	r.take(t, "a2", "a", false)
	expect("its own limit, by a pod that runs", "a", false)
	r.Suspend("a1")
	expect("its own limit, by a pod that cannot start", "a", true)
	for _, provisioner := range []string{"b", "c", "d"} {
		r.take(t, provisioner+"1", provisioner, true)
	}
	expect("the overall limit, too", "a", true)
	for _, provisioner := range []string{"b", "c"} {
		r.Suspend(provisioner + "1")
		r.take(t, provisioner+"2", provisioner, false)
	}
	expect("no volume of its own waits", "d", false)
	r.take(t, "e1", "e", true)
	r.Suspend("e1")
	r.take(t, "f1", "f", true)
	r.take(t, "d2", "d", false)
	expect("a provisioner without suspended places is no reason", "d", false)
}

// If all provisioners together are the cause, each of them is contended.
func TestContended_ByAllSuspendedSlots_IfTheyAreTooMany(t *testing.T) {
	r := newRecorder(2, 3)
	for _, volume := range []string{"a1", "a2", "b1", "c1"} {
		r.take(t, volume, volume[:1], true)
		r.Suspend(volume)
	}
	r.take(t, "b2", "b", false)
	for _, provisioner := range []string{"a", "b", "c"} {
		if !r.Contended(provisioner) {
			t.Errorf("%s is not contended", provisioner)
		}
	}
}

func TestAcquire_WithoutLimits_IsAlwaysTrue(t *testing.T) {
	r := newRecorder(0, 0)
	for i := range 1000 {
		r.take(t, fmt.Sprint(i), "a", true)
	}
}

func TestQueue_ServesAProvisionerWithOneVolumeWithinARound(t *testing.T) {
	r := newRecorder(10, 20)
	for _, provisioner := range []string{"greedy", "busy"} {
		for i := range 1000 {
			r.Acquire(fmt.Sprint(provisioner, i), provisioner, "default")
		}
	}
	r.take(t, "modest1", "modest", false)
	for i := range 4 {
		r.Release(fmt.Sprint("greedy", i))
	}
	r.wakes(t, "modest1", "greedy9", "busy1")
}

func TestQueue_IsRoundRobin(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "first", "x", true)
	for _, volume := range []string{"a1", "a2", "a3", "b1", "c1", "c2"} {
		r.take(t, volume, volume[:1], false)
	}
	r.Release("first")
	for range 5 {
		r.Release(r.woken[len(r.woken)-1])
	}
	r.wakes(t, "a1", "b1", "c1", "a2", "c2", "a3")
}
