package claim

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestCopies_AtMostOnceASecond(t *testing.T) {
	var c copies
	claim, other := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	copied := 0
	for i := range 1000 { // within ten seconds
		if c.wait(claim, now.Add(time.Duration(i)*10*time.Millisecond)) == 0 {
			copied++
		}
	}
	if copied != 10 {
		t.Errorf("a claim that changes 100 times a second was copied %d times in 10 s", copied)
	}
	if wait := c.wait(claim, now.Add(9990*time.Millisecond)); wait <= 0 || wait > copyInterval {
		t.Errorf("the next copy follows in %s", wait)
	}
	if wait := c.wait(other, now); wait != 0 {
		t.Errorf("another claim waits for %s", wait)
	}
	if wait := c.wait(claim, now); wait != 0 {
		t.Errorf("after the clock was set back, the claim waits for %s", wait)
	}
	c.forget(claim)
	if wait := c.wait(claim, now); wait != 0 {
		t.Errorf("a claim of the same name waits for %s", wait)
	}
}
