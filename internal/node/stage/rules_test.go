package stage

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// tables are all decision tables.
var tables = []table{
	stageTable, restageTable, leftoverTable, validationTable, stagingTable, stagedTable, restagingTable, unstageTable, unstagingTable,
	expansionTable,
}

// A rule that no observation reaches is superfluous, or comes too late in its table.
func TestRules_EachDecidesAtTimes(t *testing.T) {
	refer := []string{
		"a deleted PavStage left a directory", "the volume is being restaged", "an attempt that failed is not reverted yet", "the volume is being unstaged",
		"the volume is not validated yet", "the volume is valid", "there is a volume to restage", "the volume is staged", "the dead volume is being unstaged",
		"the new volume is not attached", "a deleted PavStage left a directory to unstage", "no client has the volume any more",
	}
	taken := map[string]bool{}
	random := rand.New(rand.NewPCG(1, 1))
	for range 300_000 {
		o := randomObservation(random)
		for _, t := range []table{stageTable, restageTable, unstageTable, expansionTable} {
			taken[t.decide(o).rule] = true
		}
	}
	seen := map[string]bool{}
	for _, table := range tables {
		for _, r := range table {
			if seen[r.name] || r.name == "" {
				t.Errorf("two rules have the name %q", r.name)
			}
			seen[r.name] = true
			if taken[r.name] == slices.Contains(refer, r.name) {
				t.Errorf("rule %q: taken is %t", r.name, taken[r.name])
			}
		}
	}
}

// What a decision does not depend on is not gathered: it must be the same with it.
func TestDependsOnPav_IsTrueWhereverPavMatters(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	matters, asked := 0, 0
	for range 300_000 {
		o := randomObservation(random)
		free, used := o, o
		free.pavInUse, used.pavInUse = false, true
		for _, table := range []table{stageTable, restageTable, unstageTable, expansionTable} {
			without, with := table.decide(free), table.decide(used)
			waits := [2]bool{without.step == stepWait && waitsForUsers(free), with.step == stepWait && waitsForUsers(used)}
			differs := without != with || waits[0] != waits[1]
			if got := table.dependsOnPav(o); got != differs {
				t.Fatalf("got %t, want %t, of %+v", got, differs, o)
			}
			asked++
			if differs {
				matters++
			}
		}
	}
	if matters == 0 || matters == asked {
		t.Errorf("it matters in %d of %d", matters, asked)
	}
}

// randomObservation returns an observation with random values in all fields, whether or not they can occur together.
func randomObservation(random *rand.Rand) observation {
	var o observation
	for _, value := range []*bool{
		&o.exists, &o.unbegun, &o.terminating, &o.leftover, &o.hasFinalizer, &o.thisBoot, &o.claimOnly, &o.restaging, &o.mismatch,
		&o.validated, &o.validationIntended, &o.stagingIntended, &o.outcomeHeld, &o.ready, &o.attached, &o.covering,
		&o.published, &o.occupied, &o.inUse, &o.pvReplaced, &o.clients, &o.given, &o.pavInUse, &o.unstagingWanted,
		&o.unstagingIntended, &o.full, &o.stuck, &o.stopRequested, &o.unneeded,
		&o.expansionIntended, &o.expansionStarted, &o.expanded, &o.otherHasPav, &o.withheld,
	} {
		*value = random.IntN(2) == 0
	}
	phases := []pavv1.StagePhase{"", pavv1.StageValidating, pavv1.StageStaging, pavv1.StageStaged, pavv1.StageUnstaging, pavv1.StageFailed}
	o.phase = phases[random.IntN(len(phases))]
	for _, pod := range []*workflow.State{&o.validationPod, &o.stagingPod, &o.unstagingPod, &o.expansionPod} {
		*pod = workflow.State(random.IntN(5))
	}
	o.settling, o.backoff = time.Duration(random.IntN(2)), time.Duration(random.IntN(2))
	// An existing PavStage without anything unusual reaches the last rules of the tables.
	if random.IntN(2) == 0 {
		o.exists, o.leftover, o.terminating, o.pvReplaced, o.mismatch, o.thisBoot, o.hasFinalizer = true, false, false, false, false, true, true
	}
	return o
}
