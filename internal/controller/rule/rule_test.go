package rule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/observability"
)

func TestDecide(t *testing.T) {
	above := func(limit int) func(int) bool { return func(n int) bool { return n > limit } }
	inner := Table[int]{
		{Name: "huge", When: above(100), Then: To[int](StopPod)},
		{Name: "large", When: Always[int], Then: To[int](RunPod)},
	}
	table := Table[int]{
		{Name: "refers", When: above(10), Then: inner.Decide},
		{Name: "later", When: above(1), Then: Again(func(n int) time.Duration { return time.Duration(n) * time.Second })},
		{Name: "small", When: Always[int], Then: func(int) Decision { return InDoubt(Tell("so small")) }},
	}
	for name, test := range map[string]struct {
		observation int
		want        Decision
	}{
		"the first row that applies decides":               {observation: 2, want: Decision{Step: Done, Rule: "later", After: 2 * time.Second}},
		"the last row applies where no other does":         {observation: 0, want: Decision{Step: Wait, Rule: "small", Message: "so small", Warning: true, Doubted: true}},
		"the row of another table is named":                {observation: 101, want: Decision{Step: StopPod, Rule: "huge"}},
		"the last row of another table is named like that": {observation: 11, want: Decision{Step: RunPod, Rule: "large"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, table.Decide(test.observation)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecide_NoRowApplies(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a table without a row that applies has decided")
		}
	}()
	Table[int]{}.Decide(0)
}

func TestOfPod(t *testing.T) {
	for name, test := range map[string]struct {
		pod  attempt.Decision
		want Decision
	}{
		"nothing to do or report": {pod: attempt.Decision{Action: attempt.Wait, After: time.Second}, want: Decision{Step: Done, After: time.Second}},
		"something to report": {
			pod:  attempt.Decision{Action: attempt.Wait, Reason: "R", Message: "m", Warning: true, Repeat: true},
			want: Decision{Step: Wait, Condition: "C", Reason: "R", Message: "m", Warning: true, Repeat: true}},
		"a pod to run":                     {pod: attempt.Decision{Action: attempt.Run}, want: Decision{Step: RunPod}},
		"a pod to run, and what delays it": {pod: attempt.Decision{Action: attempt.Run, Reason: "R", Message: "m"}, want: Decision{Step: RunPod, Condition: "C", Reason: "R", Message: "m"}},
		"a pod to stop":                    {pod: attempt.Decision{Action: attempt.Stop, Warning: true}, want: Decision{Step: StopPod}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, OfPod(test.pod, "C")); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessagesAreClipped(t *testing.T) {
	long := strings.Repeat("x", 2*observability.MaxCondition)
	for name, d := range map[string]Decision{
		"waiting":  Waiting("C", "R", long, false),
		"tell":     Tell(long),
		"of a pod": OfPod(attempt.Decision{Message: long}, "C"),
	} {
		if len(d.Message) > observability.MaxCondition {
			t.Errorf("%s: the message has %d bytes", name, len(d.Message))
		}
	}
}
