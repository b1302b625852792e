package jinja

import (
	"math"
	"slices"

	"github.com/albertofaria/pav/internal/template/jinja/py"
)

// expr is a compiled expression. What depends on no variable is evaluated when it is compiled, as Jinja does: it
// is faster, and where output is escaped it makes a difference.
type expr struct {
	eval eval
	// constant is the value, or nil where it is not known before a render.
	constant py.Value
}

func constantOf(value py.Value) expr {
	return expr{constant: value, eval: func(*run) (py.Value, error) { return value, nil }}
}

// fold returns an expression of parts: evaluated right away if all of them are constant, and with evaluate in a render.
// An error is left to the render, which may never get there.
func (c *compiler) fold(parts []expr, now func(s *state) (py.Value, error), evaluate eval) expr {
	if c.volatile || !allConstant(parts) {
		return expr{eval: evaluate}
	}
	c.folding.autoescape = c.autoescape
	value, err := now(c.folding)
	if err != nil {
		return expr{eval: evaluate}
	}
	return expr{constant: value, eval: replay(value, evaluate)}
}

func allConstant(parts []expr) bool {
	return !slices.ContainsFunc(parts, func(e expr) bool { return e.constant == nil })
}

// replay returns what yields a constant in a render: the value itself, if nothing can change it.
func replay(value py.Value, evaluate eval) eval {
	switch v := value.(type) {
	case py.Float:
		// Jinja writes such a constant into its code as a name that does not exist there.
		if math.IsInf(float64(v), 0) || math.IsNaN(float64(v)) {
			return func(*run) (py.Value, error) {
				return nil, raisef("NameError", "a constant that is not a finite number can only be printed")
			}
		}
		return func(*run) (py.Value, error) { return value, nil }
	case py.None, py.Bool, py.Int, py.Str, py.Markup:
		return func(*run) (py.Value, error) { return value, nil }
	}
	return evaluate
}

func constants(parts []expr) []py.Value {
	values := make([]py.Value, len(parts))
	for i, part := range parts {
		values[i] = part.constant
	}
	return values
}

// evaluateAll evaluates parts in order.
func evaluateAll(r *run, parts []expr) ([]py.Value, error) {
	values := make([]py.Value, len(parts))
	for i, part := range parts {
		value, err := part.eval(r)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

// pure returns an expression that computes of the values of its parts, in order, and of nothing else.
func (c *compiler) pure(parts []expr, compute func(s *state, values []py.Value) (py.Value, error)) expr {
	return c.fold(parts,
		func(s *state) (py.Value, error) { return compute(s, constants(parts)) },
		func(r *run) (py.Value, error) {
			values, err := evaluateAll(r, parts)
			if err != nil {
				return nil, err
			}
			return compute(r.state, values)
		})
}
