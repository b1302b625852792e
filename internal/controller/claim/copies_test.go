package claim

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestCopies_ForgetsThoseThatDoNotMatterAnyMore(t *testing.T) {
	var c copies
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range 40 * fewCopies { // 5,000 a second
		now = now.Add(200 * time.Microsecond)
		claim := types.NamespacedName{Name: fmt.Sprint(i)}
		if wait := c.wait(claim, now); wait != 0 {
			t.Fatalf("%s waits for %s", claim.Name, wait)
		}
		if wait := c.wait(claim, now.Add(copyInterval/2)); wait != copyInterval/2 {
			t.Fatalf("%s waits for %s after its copy", claim.Name, wait)
		}
		if len(c.last) > 10*fewCopies {
			t.Fatalf("%d times are kept", len(c.last))
		}
	}
	now = now.Add(time.Hour)
	for i := range 10 * fewCopies { // one a second
		c.wait(types.NamespacedName{Namespace: "other", Name: fmt.Sprint(i)}, now.Add(time.Duration(i)*time.Second))
	}
	if len(c.last) > 2*fewCopies {
		t.Errorf("%d times are kept", len(c.last))
	}
}

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
