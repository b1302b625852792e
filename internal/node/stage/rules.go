package stage

// decision is the next step, and the name of the rule that chose it.
type decision struct {
	step step
	rule string
}

// rule is a row of a table: where when is true of an observation, then is what is decided.
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

// ifRoom decides on a step that creates a pod, if the node has a slot for the pod.
func ifRoom(next step) func(observation) decision {
	return func(o observation) decision {
		if o.full {
			return decision{step: stepWait, rule: "the node has no free pod slot"}
		}
		return decision{step: next}
	}
}
