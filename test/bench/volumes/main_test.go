package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCasesAreChosenByNamesAndPatterns_InTheirOwnOrder(t *testing.T) {
	all := []benchCase{{name: "bound"}, {name: "running-now"}, {name: "running-wait"}, {name: "data"}}
	for patterns, want := range map[string][]string{
		"*":               {"bound", "running-now", "running-wait", "data"},
		"data bound":      {"bound", "data"},
		"running-*, data": {"running-now", "running-wait", "data"},
		"":                nil,
	} {
		chosen, err := choose(all, patterns)
		if err != nil {
			t.Errorf("%q: %v", patterns, err)
		}
		var got []string
		for _, c := range chosen {
			got = append(got, c.name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", patterns, diff)
		}
	}
	for _, wrong := range []string{"bound run", "["} {
		if _, err := choose(all, wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestNamesOfCasesAreUnique_AndEachHasAFloorFirst(t *testing.T) {
	names := map[string]bool{}
	for _, c := range cases() {
		if names[c.name] {
			t.Errorf("two cases are named %s", c.name)
		}
		names[c.name] = true
		for at, s := range c.subjects {
			if (s.role == floor) != (at == 0) {
				t.Errorf("%s: the role of %q at %d is %d", c.name, s.name, at, s.role)
			}
		}
	}
}
