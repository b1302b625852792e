package volume

import (
	"slices"
	"time"

	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/observability"
)

// decision is a step, and what to report about it.
type decision struct {
	step step

	// rule is the name of the rule that chose the step.
	rule string

	// condition, reason and message are those of the condition; the message is also the event's.
	condition, reason, message string

	// warning says that the administrator may have to act.
	warning bool

	// repeat says that the event is recorded again although the condition is unchanged.
	repeat bool

	// doubted says that the API server is asked before the decision is reported.
	doubted bool

	// after is when to decide again if nothing changes; 0 for not before that.
	after time.Duration
}

// rule is a row of a table: where when is true of an observation, then is what is decided. Both are pure: they do no I/O and read
// no clock.
type rule struct {
	name string
	when func(observation) bool
	then func(observation) decision
}

// table has rules in their order: the first whose condition is true decides. The condition of the last rule is always true.
type table []rule

// decide returns the decision of the first rule that applies. If that refers to another table, the rule of that table is named.
func (t table) decide(o observation) decision {
	for _, r := range t {
		if !r.when(o) {
			continue
		}
		d := r.then(o)
		if d.rule == "" {
			d.rule = r.name
		}
		return d
	}
	panic("no rule of the table applies")
}

// always is the condition of the last rule of a table.
func always(observation) bool { return true }

// to decides on a step.
func to(next step) func(observation) decision {
	return func(observation) decision { return decision{step: next} }
}

// refuse decides to end the attempt before any pod runs, for a reason.
func refuse(why func(observation) string) func(observation) decision {
	return func(o observation) decision { return decision{step: stepRefuse, message: why(o)} }
}

// again decides to do nothing for a time.
func again(after func(observation) time.Duration) func(observation) decision {
	return func(o observation) decision { return decision{step: stepDone, after: after(o)} }
}

func waiting(condition, reason, message string, warning bool) decision {
	return decision{step: stepWait, condition: condition, reason: reason, message: observability.Clip(message, observability.MaxCondition), warning: warning}
}

// tell decides to do nothing, and to tell the claim why. The record has no condition for that.
func tell(message string) decision {
	return decision{step: stepWait, message: observability.Clip(message, observability.MaxCondition), warning: true}
}

// doubted marks a decision that follows from the absence of an object: a cache that is behind may not have the object yet.
func doubted(d decision) decision {
	d.doubted = true
	return d
}

// pod is true of an observation whose recorded pod is in one of the states.
func pod(states ...attempt.Progress) func(observation) bool {
	return func(o observation) bool { return slices.Contains(states, o.progress()) }
}

// decided returns the decision that follows from the decision about a pod; the condition reports it.
func decided(v attempt.Decision, condition string) decision {
	d := decision{step: stepDone, after: v.After}
	switch {
	case v.Action == attempt.Run:
		d.step = stepRunPod
	case v.Action == attempt.Stop:
		d.step = stepStopPod
	case v.Message != "":
		d.step = stepWait
	}
	if v.Message != "" {
		d.condition, d.reason, d.message = condition, v.Reason, observability.Clip(v.Message, observability.MaxCondition)
		d.warning, d.repeat = v.Warning, v.Repeat
	}
	return d
}
