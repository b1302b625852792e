package observability

import (
	"fmt"
	"testing"
	"time"
)

func TestRepeats(t *testing.T) {
	var repeats Repeats
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	steps := []struct {
		object, message string
		after           time.Duration
		due             bool
	}{
		{"a", "no class", 0, true},
		{"a", "no class", time.Second, false},
		{"b", "no class", time.Second, true},
		{"a", "no mode", 2 * time.Second, true},
		{"a", "no class", 3 * time.Second, false}, // two that alternate are not new each time
		{"a", "no class", RepeatAfter - time.Second, false},
		{"a", "no class", RepeatAfter, true},
		{"a", "no class", RepeatAfter + time.Second, false},
		{"a", "no class", 0, true}, // the clock was set back by all that time
	}
	for i, step := range steps {
		due, next := repeats.Due(step.object, step.message, noon.Add(step.after))
		if due != step.due || next <= 0 || next > RepeatAfter {
			t.Errorf("step %d: %s of %s after %s: got %t, next in %s; want %t", i, step.message, step.object, step.after, due, next, step.due)
		}
	}
	repeats.Forget("a")
	if due, _ := repeats.Due("a", "no class", noon); !due {
		t.Error("what is forgotten is not due")
	}
}

func TestRepeats_IsLatest(t *testing.T) {
	var repeats Repeats
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	if repeats.IsLatest("a", "no class") {
		t.Error("what was never reported is the latest")
	}
	repeats.Due("a", "no class", noon)
	repeats.Due("b", "no mode", noon.Add(time.Second))
	if !repeats.IsLatest("a", "no class") {
		t.Error("the only one is not the latest")
	}
	repeats.Due("a", "no mode", noon.Add(time.Second))
	repeats.Due("a", "no class", noon.Add(2*time.Second)) // held back
	if repeats.IsLatest("a", "no class") || !repeats.IsLatest("a", "no mode") {
		t.Error("the latest is not the one that was reported last")
	}
}

// A message that is never the same twice stays within the budget, too.
func TestRepeats_MessagesThatAlwaysDiffer(t *testing.T) {
	var repeats Repeats
	now, told := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), 0
	for i := range 1000 {
		if due, _ := repeats.Due("a", fmt.Sprint("attempt ", i), now.Add(time.Duration(i)*time.Millisecond)); due {
			told++
		}
	}
	if told != maxMessages {
		t.Errorf("%d of 1000 messages were reported, want %d", told, maxMessages)
	}
}
