package volume

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAvoidance(t *testing.T) {
	a := &avoidance{}
	expect := func(what, provisioner string, later time.Duration, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, a.of(provisioner, noon.Add(later))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("nothing is known", "demo", 0)
	a.note("demo", "n2", noon)
	a.note("demo", "n1", noon)
	expect("both hang", "demo", time.Minute, "n1", "n2")
	expect("of another provisioner", "other", time.Minute)
	a.clear("demo", "n1", noon.Add(-time.Second))
	expect("a pod that had started before is no proof", "demo", time.Minute, "n1", "n2")
	a.clear("demo", "n1", noon.Add(time.Second))
	expect("one that starts after that is", "demo", time.Minute, "n2")
	expect("for some time", "demo", avoidFor, "n2")
	expect("not for ever", "demo", avoidFor+time.Second)
	for i := range mostAvoided + 1 {
		a.note("demo", fmt.Sprint("m", i), noon)
	}
	expect("where all nodes are suspect, none is avoided", "demo", 0)
	if a.of("demo", noon.Add(avoidFor+1)); len(a.hung) > 0 {
		t.Errorf("it remembers %v for ever", a.hung)
	}
}

func TestCannotStart(t *testing.T) {
	tests := map[string]struct {
		state      *state
		lent, hung bool
	}{
		"runs":                              {state: at("Creating").pod(600, runs)},
		"has just been created":             {state: at("Creating").pod(29)},
		"no kubelet has seen it":            {state: at("Creating").pod(30), lent: true, hung: true},
		"a volume cannot be mounted":        {state: at("Creating").pod(30, hung), lent: true, hung: true},
		"has just got its node":             {state: at("Creating").pod(600, hung, boundAgo(29))},
		"its image is being pulled":         {state: at("Creating").pod(30, pulling), lent: true},
		"its image cannot be pulled":        {state: at("Creating").pod(1, pulls), lent: true},
		"has no node":                       {state: at("Creating").pod(1, unbound), lent: true},
		"the kubelet tells nothing of that": {state: at("Creating").pod(30, untold), lent: true},
		"crashes, and may have done much":   {state: at("Creating").pod(600, crashes)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := test.state.o.pod()
			if got := cannotStart(noon, pod); got != test.lent {
				t.Errorf("its place is lent: got %t", got)
			}
			if got := isHung(noon, pod); got != test.hung {
				t.Errorf("it hangs on its node: got %t", got)
			}
		})
	}
}
