package rule

import (
	"time"

	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/observability"
)

// Step is the next thing to do for an object. Controllers have their own steps besides these.
type Step string

const (
	// Done means that nothing is to be done until something changes.
	Done Step = "Done"

	// Wait means the same, and that a condition says what the object waits for.
	Wait Step = "Wait"

	// RunPod means to create the recorded pod as soon as it has a slot.
	RunPod Step = "RunPod"

	// StopPod means to delete the recorded pod.
	StopPod Step = "StopPod"
)

// Decision is a step, and what to report about it.
type Decision struct {
	Step Step

	// Rule is the name of the row that chose the step.
	Rule string

	// Condition, Reason and Message are those of the condition; the message is also the event's.
	Condition, Reason, Message string

	// Warning says that the administrator may have to act.
	Warning bool

	// Repeat says that the event is recorded again although the condition is unchanged.
	Repeat bool

	// Doubted says that the API server is asked before the decision is reported.
	Doubted bool

	// After is when to decide again if nothing changes; 0 for not before that.
	After time.Duration
}

// Row is a rule: where When is true of an observation, Then is what is decided. Both are pure.
type Row[O any] struct {
	// Name says when the rule applies. No other rule of a controller has it.
	Name string

	When func(O) bool
	Then func(O) Decision
}

// Table has rules in their order: the first whose condition is true decides. The condition of the last rule is always true.
type Table[O any] []Row[O]

// Decide returns the decision of the first rule that applies. If that refers to another table, the rule of that table is named.
func (t Table[O]) Decide(o O) Decision {
	for _, r := range t {
		if !r.When(o) {
			continue
		}
		d := r.Then(o)
		if d.Rule == "" {
			d.Rule = r.Name
		}
		return d
	}
	panic("no rule of the table applies")
}

// Always is the condition of the last rule of a table.
func Always[O any](O) bool { return true }

// To decides on a step.
func To[O any](next Step) func(O) Decision {
	return func(O) Decision { return Decision{Step: next} }
}

// Again decides to do nothing for a time.
func Again[O any](after func(O) time.Duration) func(O) Decision {
	return func(o O) Decision { return Decision{Step: Done, After: after(o)} }
}

// Waiting decides to do nothing, and to report in a condition what the object waits for.
func Waiting(condition, reason, message string, warning bool) Decision {
	return Decision{Step: Wait, Condition: condition, Reason: reason, Message: observability.Clip(message, observability.MaxCondition), Warning: warning}
}

// Tell decides to do nothing, and to tell the user of the object why. The record has no condition for that.
func Tell(message string) Decision {
	return Decision{Step: Wait, Message: observability.Clip(message, observability.MaxCondition), Warning: true}
}

// InDoubt marks a decision that follows from the absence of an object: a cache that is behind may not have the object yet.
func InDoubt(d Decision) Decision {
	d.Doubted = true
	return d
}

// OfPod returns the decision that follows from the decision about a pod; the condition reports it.
func OfPod(v attempt.Decision, condition string) Decision {
	d := Decision{Step: Done, After: v.After}
	switch {
	case v.Action == attempt.Run:
		d.Step = RunPod
	case v.Action == attempt.Stop:
		d.Step = StopPod
	case v.Message != "":
		d.Step = Wait
	}
	if v.Message != "" {
		d.Condition, d.Reason, d.Message = condition, v.Reason, observability.Clip(v.Message, observability.MaxCondition)
		d.Warning, d.Repeat = v.Warning, v.Repeat
	}
	return d
}
