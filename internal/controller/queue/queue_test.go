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
	if got := r.Take(volume, provisioner, "default"); got != want {
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

func TestLend_MakesRoom_UntilAsManyOfTheProvisionerAreLent(t *testing.T) {
	r := newRecorder(2, 2)
	r.take(t, "a1", "a", true)
	r.take(t, "a2", "a", true)
	r.take(t, "a3", "a", false)
	r.take(t, "a4", "a", false)
	r.take(t, "b1", "b", false)
	r.Lend("a1")
	r.Lend("a1")
	r.Lend("b2")
	r.wakes(t, "a3")
	r.Lend("a2")
	r.wakes(t, "b1")
	r.Give("b1")
	r.wakes(t)
	r.take(t, "a1", "a", true)
	if diff := cmp.Diff(Counts{Running: 1, Lent: 2, Waiting: 1}, r.Of("a")); diff != "" {
		t.Errorf("counts of a (-want +got):\n%s", diff)
	}

	r.Reclaim("a1")
	r.Reclaim("a1")
	r.Reclaim("b1")
	r.wakes(t)
	r.Reclaim("a2")
	if r.Running() != 3 {
		t.Errorf("%d run, want 3: above the limit, as all have started", r.Running())
	}
	r.Give("a1")
	r.wakes(t)
	r.Give("a3")
	r.wakes(t, "a4")
}

func TestReclaim_MakesRoom_WhereOnlyTheLentPlacesStoodInTheWay(t *testing.T) {
	r := newRecorder(4, 2)
	for _, volume := range []string{"a1", "a2"} {
		r.take(t, volume, "a", true)
		r.Lend(volume)
	}
	r.take(t, "a3", "a", false)
	r.Reclaim("a1")
	r.wakes(t, "a3")
}

// However many pods of others cannot start, a provisioner without a place gets one.
func TestTake_OfAProvisionerWithoutAPlace_IsTrue_HoweverManyPlacesAreLent(t *testing.T) {
	r := newRecorder(2, 2)
	pods := 0
	for number := range 50 {
		provisioner := fmt.Sprint("broken", number)
		for r.Take(fmt.Sprint(provisioner, "-", pods), provisioner, "default") {
			r.Lend(fmt.Sprint(provisioner, "-", pods))
			pods++
		}
	}
	if pods != 2*2+48 {
		t.Errorf("%d pods that cannot start, want twice the limit and one of each further provisioner", pods)
	}
	r.take(t, "healthy1", "healthy", true)
	r.take(t, "healthy2", "healthy", false)
	r.Give("healthy1")
	r.wakes(t, "healthy2")
}

// The same for a namespace within a provisioner, up to a limit.
func TestTake_OfANamespaceWithoutAPlace_IsTrue_UntilThreeTimesTheLimit(t *testing.T) {
	r := newRecorder(2, 2)
	pods := 0
	for number := range 50 {
		volume := fmt.Sprint("a", number)
		if !r.Take(volume, "a", fmt.Sprint("tenant", number)) {
			break
		}
		r.Lend(volume)
		pods++
	}
	if pods != 3*2 {
		t.Errorf("%d pods that cannot start, want three times the limit", pods)
	}
	r.take(t, "b1", "b", true)
}

func TestTake_KeepsATenthForProvisionersWithNoneRunning(t *testing.T) {
	r := newRecorder(10, 10)
	for number := range 9 {
		r.take(t, fmt.Sprint("a", number), fmt.Sprint("a", number%3), true)
	}
	r.take(t, "a9", "a0", false)
	r.take(t, "b1", "b", true)
	r.take(t, "c1", "c", false)
	r.Give("a0")
	r.wakes(t, "c1")
	r.Give("a1")
	r.wakes(t) // one is free again, for the next provisioner
	r.Give("a2")
	r.wakes(t, "a9")
}

func TestTake_KeepsATenthOfAProvisionersPlacesForNamespacesWithNoneRunning(t *testing.T) {
	r := newRecorder(100, 10)
	for number := range 4000 {
		if got, want := r.Take(fmt.Sprint("greedy", number), "a", "greedy"), number < 9; got != want {
			t.Fatalf("volume %d: got %t, want %t", number, got, want)
		}
	}
	if !r.Take("modest", "a", "modest") {
		t.Error("a single claim waits for those of another namespace")
	}
}

func TestGive_IsTurnsByNamespaceWithinAProvisioner(t *testing.T) {
	r := newRecorder(1, 1)
	r.take(t, "first", "a", true)
	for _, volume := range []string{"x1", "x2", "x3", "y1", "z1", "z2"} {
		if r.Take(volume, "a", volume[:1]) {
			t.Fatalf("%s has a place above the limit", volume)
		}
	}
	r.Give("first")
	for range 5 {
		r.Give(r.woken[len(r.woken)-1])
	}
	r.wakes(t, "x1", "y1", "z1", "x2", "z2", "x3")
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
	r.Adopt("a1", "a", "default")
	r.Adopt("a2", "a", "default")
	r.Adopt("a2", "a", "default")
	r.take(t, "a1", "a", true)
	r.take(t, "a3", "a", false)
	r.take(t, "a4", "a", false)
	r.Adopt("a4", "a", "default")
	if r.Running() != 3 || r.Waiting() != 1 {
		t.Errorf("%d run and %d wait", r.Running(), r.Waiting())
	}
	r.Give("a1")
	r.Give("a2")
	r.wakes(t)
	r.Give("a4")
	r.wakes(t, "a3")
}

func TestContended_OnlyWhereThePodsThatCannotStartAreTheReason(t *testing.T) {
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
	r.Lend("a1")
	expect("its own limit, by a pod that cannot start", "a", true)
	for _, provisioner := range []string{"b", "c", "d"} {
		r.take(t, provisioner+"1", provisioner, true)
	}
	expect("the overall limit, too", "a", true)
	for _, provisioner := range []string{"b", "c"} {
		r.Lend(provisioner + "1")
		r.take(t, provisioner+"2", provisioner, false)
	}
	expect("no volume of its own waits", "d", false)
	r.take(t, "e1", "e", true)
	r.Lend("e1")
	r.take(t, "f1", "f", true)
	r.take(t, "d2", "d", false)
	expect("a provisioner without lent places is no reason", "d", false)
}

// Where all provisioners together are the reason, each of them is.
func TestContended_ByAllThatHaveLentPlaces_WhenTheyAreTooMany(t *testing.T) {
	r := newRecorder(2, 3)
	for _, volume := range []string{"a1", "a2", "b1", "c1"} {
		r.take(t, volume, volume[:1], true)
		r.Lend(volume)
	}
	r.take(t, "b2", "b", false)
	for _, provisioner := range []string{"a", "b", "c"} {
		if !r.Contended(provisioner) {
			t.Errorf("%s is not contended", provisioner)
		}
	}
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
			r.Take(fmt.Sprint(provisioner, i), provisioner, "default")
		}
	}
	r.take(t, "modest1", "modest", false)
	for i := range 4 {
		r.Give(fmt.Sprint("greedy", i))
	}
	r.wakes(t, "modest1", "greedy9", "busy1")
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
