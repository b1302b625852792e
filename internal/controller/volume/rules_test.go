package volume

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tables are all decision tables.
var tables = []table{
	volumeTable, withPVTable, withoutPVTable, pendingTable, idleTable, podTable, overTable, revertTable, createdTable,
	revertingTable, keptTable, deletionTable, nextDeletionTable, deletionPodTable, expansionTable, modificationTable, changePodTable, sourceTable,
	grantingTable, bucketUseTable, releaseTable,
}

// taken has the names of the rules that made a decision in a test.
var taken sync.Map

// decideIn decides, and records the rule that made the decision.
func decideIn(o observation) decision {
	d := decide(o)
	for name := range strings.SplitSeq(d.Rule, bothRules) {
		taken.Store(name, true)
	}
	return d
}

// TestMain fails if a rule that decides on a step by itself made no decision in any test.
func TestMain(m *testing.M) {
	code := m.Run()
	if selected := flag.Lookup("test.run").Value.String() != ""; code == 0 && !selected {
		for _, name := range untaken() {
			fmt.Fprintf(os.Stderr, "no test has a decision by the rule %q\n", name)
			code = 1
		}
	}
	os.Exit(code)
}

// untaken returns the names of the rules that made no decision in any test, except those that refer to another table.
func untaken() []string {
	refer := []string{
		"the creation is being reverted", "a deletion pod may have begun", "the PersistentVolume exists", "the volume is not provisioned",
		"the PersistentVolume is gone", "the volume is released, with reclaim policy Delete", "the PersistentVolume was deleted",
		"a validation or creation pod is recorded", "the handle is recorded", "there is no storage", "the pod is over",
		"the storage of the creation pod is not needed any more", "a deletion pod reverts the creation",
		"the handle of the storage to revert is not recorded", "the storage is to be reverted", "a deletion pod is recorded to revert the creation",
		"a deletion pod is recorded", "the storage is to be deleted", "the PersistentVolume of a creation to revert is kept",
		"an expansion or modification pod is recorded", "the volume is in use", "a creation pod that is not created waits for its source",
		"the volume of a bucket is not needed any more", "the volume waits for its bucket", "a volume in use is not known to have access to its bucket",
		"the volume of a bucket is released, with reclaim policy Retain", "the bucket of a deleted PersistentVolume is to be retained", "the bucket of the volume to delete is left",
	}
	var names []string
	for _, table := range tables {
		for _, r := range table {
			if _, ok := taken.Load(r.Name); !ok && !slices.Contains(refer, r.Name) {
				names = append(names, r.Name)
			}
		}
	}
	return names
}

func TestRules_EachHasANameOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range tables {
		for _, r := range table {
			if seen[r.Name] || r.Name == "" {
				t.Errorf("two rules have the name %q", r.Name)
			}
			seen[r.Name] = true
		}
	}
}
