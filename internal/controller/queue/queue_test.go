package queue

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorder is a queue and the volumes that it has woken since they were last asked for.
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
	if got := r.Take(volume, provisioner); got != want {
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

func TestTake_GivesPlacesUpToTheLimits_AndAgainToWhoeverHasOne(t *testing.T) {
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

func TestGive_WakesTheNextOfTheProvisioner_WhosePlaceIsReserved(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", false)
	r.take(t, "a3", "a", false)
	r.Give("a1")
	r.wakes(t, "a2")
	r.take(t, "a3", "a", false)
	r.take(t, "a1", "a", false)
	r.take(t, "a2", "a", true)
	r.Give("a2")
	r.wakes(t, "a3")
	// Nobody came for this one.
	r.Give("a3")
	r.wakes(t, "a1")
	r.take(t, "a1", "a", true)
}

func TestGive_OfAVolumeInLine_LetsTheOthersMoveUp(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", false)
	r.take(t, "b1", "b", false)
	r.Give("a2")
	r.Give("a2")
	r.Give("unknown")
	r.wakes(t)
	r.Give("a1")
	r.wakes(t, "b1")
}

func TestGive_ByAProvisionerAtItsLimit_SkipsThoseThatHaveNoRoom(t *testing.T) {
	r := newRecorder(3, 2)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", true)
	r.take(t, "a3", "a", false)
	r.take(t, "b1", "b", true)
	r.take(t, "c1", "c", false)
	r.Give("b1")
	r.wakes(t, "c1")
	r.Give("c1")
	r.wakes(t)
	r.Give("a1")
	r.wakes(t, "a3")
}

func TestLend_MakesRoomForOthers_ButNotForTheProvisionersOwn(t *testing.T) {
	r := newRecorder(2, 2)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", true)
	r.take(t, "a3", "a", false)
	r.take(t, "b1", "b", false)
	r.Lend("a1")
	r.Lend("a1")
	r.Lend("b2")
	r.wakes(t, "b1")
	r.Lend("a2")
	r.wakes(t)
	r.take(t, "a1", "a", true)
	if diff := cmp.Diff(Counts{Lent: 2, Waiting: 1}, r.Of("a")); diff != "" {
		t.Errorf("counts of a (-want +got):\n%s", diff)
	}

	r.Reclaim("a1")
	r.Reclaim("a1")
	r.Reclaim("a2")
	r.Reclaim("b1")
	if r.Running() != 3 {
		t.Errorf("%d run, want 3: above the limit, as all have started", r.Running())
	}
	r.Give("a1")
	r.wakes(t)
	r.Give("b1")
	r.wakes(t, "a3")
}

func TestLend_OfAVolumeInLine_IsNothing(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", false)
	r.Lend("a2")
	r.Reclaim("a2")
	r.Give("a1")
	r.wakes(t, "a2")
}

func TestGive_OfALentPlace_IsItsProvisionersRoom(t *testing.T) {
	r := newRecorder(2, 1)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", false)
	r.Lend("a1")
	r.wakes(t)
	r.Give("a1")
	r.wakes(t, "a2")
}

func TestAdopt_CountsAboveTheLimits(t *testing.T) {
	r := newRecorder(1, 1)
	r.Adopt("a1", "a")
	r.Adopt("a2", "a")
	r.Adopt("a2", "a")
	r.take(t, "a1", "a", true)
	r.take(t, "a3", "a", false)
	r.take(t, "a4", "a", false)
	r.Adopt("a4", "a")
	if r.Running() != 3 || r.Waiting() != 1 {
		t.Errorf("%d run and %d wait", r.Running(), r.Waiting())
	}
	r.Give("a1")
	r.Give("a2")
	r.wakes(t)
	r.Give("a4")
	r.wakes(t, "a3")
}

func TestContended_OnlyWhereTheProvisionersLimitIsTheReason(t *testing.T) {
	r := newRecorder(3, 1)
	expect := func(reason string, want bool) {
		t.Helper()
		if got := r.Contended("a"); got != want {
			t.Errorf("%s: got %t", reason, got)
		}
	}
	expect("unknown", false)
	r.take(t, "a1", "a", true)
	expect("nobody waits", false)
	r.take(t, "a2", "a", false)
	expect("its own limit", true)
	r.take(t, "b1", "b", true)
	r.take(t, "c1", "c", true)
	expect("both limits", false)
	r.Lend("a1")
	expect("its own limit, by a pod that cannot start", true)
}

func TestTake_WithoutLimits_IsAlwaysTrue(t *testing.T) {
	r := newRecorder(0, 0)
	for i := range 1000 {
		r.take(t, fmt.Sprint(i), "a", true)
	}
}

func TestQueue_GivesAProvisionerWithOneVolumeItsTurnWithinARound(t *testing.T) {
	r := newRecorder(10, 20)
	for _, provisioner := range []string{"greedy", "busy"} {
		for i := range 1000 {
			r.Take(fmt.Sprint(provisioner, i), provisioner)
		}
	}
	r.take(t, "modest1", "modest", false)
	for i := range 4 {
		r.Give(fmt.Sprint("greedy", i))
	}
	r.wakes(t, "greedy10", "busy0", "modest1", "greedy11")
}

func TestQueue_GivesTurnsInTurn(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "first", "x", true)
	for _, volume := range []string{"a1", "a2", "a3", "b1", "c1", "c2"} {
		r.take(t, volume, volume[:1], false)
	}
	r.Give("first")
	for range 5 {
		r.Give(r.woken[len(r.woken)-1])
	}
	r.wakes(t, "a1", "b1", "c1", "a2", "c2", "a3")
}
