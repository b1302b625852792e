package simulation

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// While the pods of one provisioner never start, the claims of other provisioners wait at most twice as long as
// otherwise.
func TestFairness(t *testing.T) {
	waits := func(broken string) (all []time.Duration) {
		for seed := range uint64(12) {
			s := settings{without: optional, broken: broken, classes: []string{"named-now", "named-now", "named-now", "plain-now", "validated-now"}}
			synctest.Test(t, func(t *testing.T) {
				w, err := newWorld(t.Context(), seed+1, s)
				if err == nil {
					err = w.Run(5000, nil)
				}
				if err != nil {
					t.Errorf("seed %d, broken %q: %v", seed+1, broken, err)
				}
				bound := w.end().bound
				all = append(all, append(bound["plain-now"], bound["validated-now"]...)...)
			})
		}
		slices.Sort(all)
		return all
	}
	undisturbed, disturbed := waits(""), waits("named")
	if len(undisturbed) < 30 || len(disturbed) < 30 {
		t.Fatalf("%d claims were bound, and %d beside a broken provisioner: that says nothing", len(undisturbed), len(disturbed))
	}
	for name, part := range map[string]float64{"median": 0.5, "95%": 0.95} {
		before, after := undisturbed[int(part*float64(len(undisturbed)))], disturbed[int(part*float64(len(disturbed)))]
		t.Logf("%s: a claim of others waits %s, and %s beside a broken provisioner", name, before, after)
		if after > 2*before {
			t.Errorf("%s: a claim of others waits %s beside a broken provisioner, and %s without it", name, after, before)
		}
	}
}
