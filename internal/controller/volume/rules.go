package volume

import (
	"slices"
	"time"

	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
)

// The tables of volumes are of observations.
type (
	step     = rule.Step
	decision = rule.Decision
	table    = rule.Table[observation]
)

// always is the condition of the last rule of a table.
func always(o observation) bool { return rule.Always(o) }

// to decides on a step.
func to(next step) func(observation) decision { return rule.To[observation](next) }

// again decides to do nothing for a time.
func again(after func(observation) time.Duration) func(observation) decision {
	return rule.Again(after)
}

// refuse decides to end the attempt before any pod runs, for a reason.
func refuse(why func(observation) string) func(observation) decision {
	return func(o observation) decision { return decision{Step: stepRefuse, Message: why(o)} }
}

// pod is true of an observation whose recorded pod is in one of the states.
func pod(states ...attempt.Progress) func(observation) bool {
	return func(o observation) bool { return slices.Contains(states, o.progress()) }
}
