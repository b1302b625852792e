package simulation

import (
	"slices"
	"strings"
	"testing"
)

// troubles lists the kinds of trouble by the number of runs in which each must have happened: the first happen at least thirty
// times in a hundred runs, the others about ten times. Those that end with a colon are the beginnings of several names.
var troubles = map[int][]string{
	100: {
		"agents killed", "agents killed after:", "agents killed before:", "answers cut", "caches held", "clocks that are wrong",
		"containers that failed", "containers that failed after their effect", "containers that hang",
		"creation pods that called it infeasible", "drains", "evictions", "exit codes told before the phase", "kubelets confused",
		"leaders replaced", "links of nodes gone or back", "lists again", "lists again on nodes", "minutes passed", "node agents killed",
		"nodes without power", "nodes without power in the same boot", "pods evicted by kubelet", "pods that the webhook could not judge",
		"requests refused", "requests without a link", "slow containers", "webhooks gone or back", "workflow pods deleted",
	},
	1000: {
		"Nodes deleted", "containers that kubelet could not locate", "creation pods that go on for long after /pav/ready",
		"daemons that died", "evictions refused", "last writes of agents", "volumes that were mounted late", "workflow pods removed by force",
	},
}

// untroubled returns the kinds of trouble that never happened, if there were so many runs that this is no chance.
func (o outcome) untroubled(s settings) (never []string) {
	if s.steps < 3000 || len(s.without) > 0 {
		return nil
	}
	happened := map[string]bool{}
	for what, count := range o.counts {
		kind, _, several := strings.Cut(what, ": ")
		if several {
			kind += ":"
		}
		happened[kind] = happened[kind] || count > 0
	}
	for runs, kinds := range troubles {
		for _, kind := range kinds {
			if o.runs >= runs && !happened[kind] {
				never = append(never, kind)
			}
		}
	}
	slices.Sort(never)
	return never
}

func TestUntroubled_IfThereWereManyRuns(t *testing.T) {
	full, some := settings{steps: 3000}, map[string]int{"agents killed after: create Pod": 1, "agents killed before: Bind": 1}
	for _, kinds := range troubles {
		for _, kind := range kinds {
			if !strings.HasSuffix(kind, ":") {
				some[kind] = 1
			}
		}
	}
	if never := (outcome{runs: 1000, counts: some}).untroubled(full); len(never) > 0 {
		t.Errorf("all happened, but for %q", never)
	}
	delete(some, "agents killed after: create Pod")
	delete(some, "daemons that died")
	some["drains"] = 0
	for runs, want := range map[int][]string{99: nil, 100: {"agents killed after:", "drains"}, 1000: {"agents killed after:", "daemons that died", "drains"}} {
		if never := (outcome{runs: runs, counts: some}).untroubled(full); !slices.Equal(never, want) {
			t.Errorf("in %d runs: got %q, want %q", runs, never, want)
		}
	}
	for _, s := range []settings{{steps: 3000, without: []string{"late"}}, {steps: 100}} {
		if never := (outcome{runs: 1000, counts: some}).untroubled(s); len(never) > 0 {
			t.Errorf("with %+v: got %q", s, never)
		}
	}
}
