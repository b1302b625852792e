package jinja

import (
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

// run is a part of a render: its output, and the variables that it sees.
type run struct {
	*state
	// scope has the variables of the render, and what the template sets outside of inner scopes.
	scope *scope
	frame *activation
	out   *output
	// collected is the input of the filter of a filter or set block.
	collected py.Value
}

// scope is what Jinja calls the context.
type scope struct {
	variables map[string]py.Value
	// set has what the template assigned at its top level; it hides variables.
	set    map[string]py.Value
	blocks map[string]*block
}

// lookUp returns the value of a variable of the render, or nil.
func (r *run) lookUp(name string) py.Value {
	if value, ok := r.scope.set[name]; ok {
		return value
	}
	if value, ok := r.scope.variables[name]; ok {
		return value
	}
	if value, ok := global(r.state, name); ok {
		return value
	}
	return nil
}

// derive returns a scope that also sees locals.
func (c *scope) derive(locals map[string]py.Value) *scope {
	all := make(map[string]py.Value, len(c.variables)+len(c.set)+len(locals))
	for _, values := range []map[string]py.Value{c.variables, c.set, locals} {
		for name, value := range values {
			if value != nil {
				all[name] = value
			}
		}
	}
	return &scope{variables: all, set: map[string]py.Value{}, blocks: c.blocks}
}

// unit is the code that shares one activation: the template, a block, a macro, a recursive loop, a loop's test.
type unit struct {
	outer *unit
	slots map[identifier]int
}

func newUnit(outer *unit) *unit { return &unit{outer: outer, slots: map[identifier]int{}} }

func (u *unit) slot(id identifier) int {
	slot, ok := u.slots[id]
	if !ok {
		slot = len(u.slots)
		u.slots[id] = slot
	}
	return slot
}

// activation has the variables of one execution of a unit; nil is a variable without a value. Units inside it
// see those of outer by reference, as Python's closures do.
type activation struct {
	slots []py.Value
	outer *activation
}

// size is the approximate size of an activation in bytes.
func (u *unit) size() int { return 4*valueSize + valueSize*len(u.slots) }

// activate is called when the unit has been compiled, and all its slots are known.
func (u *unit) activate(outer *activation) *activation {
	return &activation{slots: make([]py.Value, len(u.slots)), outer: outer}
}

// reference is the position of a variable: how many activations further out, and its slot there.
type reference struct{ depth, slot int }

func (ref reference) in(frame *activation) *py.Value {
	for range ref.depth {
		frame = frame.outer
	}
	return &frame.slots[ref.slot]
}

// output collects what is printed.
type output struct {
	text strings.Builder
	// failed says that a value was printed that is not text. As in Jinja, the error occurs when the output is joined.
	failed error
}

// done returns the output.
func (o *output) done() (string, error) { return o.text.String(), o.failed }

// print appends text to the output.
func (r *run) print(text string) error {
	if err := r.budget.Append(r.out.text.Len(), len(text)); err != nil {
		return err
	}
	r.out.text.WriteString(text)
	return nil
}

// capture executes body and returns what it prints.
func (r *run) capture(body exec) (string, error) {
	inner := *r
	inner.out = &output{}
	if err := body(&inner); err != nil {
		return "", err
	}
	return inner.out.done()
}
