package jinja

import (
	"errors"
	"math"
	"strings"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

func (c *compiler) binary(e *syntax.Binary, f *frame) (expr, error) {
	operands, err := c.expressions([]syntax.Expr{e.Left, e.Right}, f)
	if err != nil {
		return expr{}, err
	}
	compute := func(s *state, v []py.Value) (py.Value, error) {
		value, err := py.Binary(s.budget, e.Op, v[0], v[1])
		return value, at(e.Pos, err)
	}
	if e.Op != py.OpPow || allConstant(operands) || !c.isNegative(operands[0]) {
		return c.pure(operands, compute), nil
	}
	// Jinja writes a constant into its code as it prints, without parentheses, so that -2 ** x is -(2 ** x) there, unless
	// all of it is constant.
	return expr{eval: func(r *run) (py.Value, error) {
		base, err := py.Negative(r.budget, operands[0].constant)
		if err != nil {
			return nil, at(e.Pos, err)
		}
		exponent, err := operands[1].eval(r)
		if err != nil {
			return nil, err
		}
		power, err := compute(r.state, []py.Value{base, exponent})
		if err != nil {
			return nil, err
		}
		power, err = py.Negative(r.budget, power)
		return power, at(e.Pos, err)
	}}, nil
}

// isNegative reports whether an expression is written into Jinja's code as a number with a minus.
func (c *compiler) isNegative(e expr) bool {
	if c.volatile || !e.replayed() {
		return false
	}
	switch v := e.constant.(type) {
	case py.Int:
		return v.Sign() < 0
	case py.Float:
		return math.Signbit(float64(v))
	}
	return false
}

func (c *compiler) cond(e *syntax.Cond, f *frame) (expr, error) {
	f = f.softened()
	test, err := c.expression(e.Test, f)
	if err != nil {
		return expr{}, err
	}
	then, err := c.expression(e.Then, f)
	if err != nil {
		return expr{}, err
	}
	otherwise := expr{eval: func(*run) (py.Value, error) {
		return &py.Undefined{Hint: "the inline if-expression evaluated to false and no else section was defined"}, nil
	}}
	if e.Else != nil {
		if otherwise, err = c.expression(e.Else, f); err != nil {
			return expr{}, err
		}
	}
	if chosen, ok := c.choose(test, then, otherwise); ok {
		return chosen, nil
	}
	return expr{eval: func(r *run) (py.Value, error) {
		value, err := test.eval(r)
		if err != nil {
			return nil, err
		}
		holds, err := py.Truth(r.budget, value)
		if err != nil {
			return nil, at(e.Pos, err)
		}
		if holds {
			return then.eval(r)
		}
		return otherwise.eval(r)
	}}, nil
}

// choose returns the branch that a constant condition selects, if that is constant, too.
func (c *compiler) choose(test, then, otherwise expr) (chosen expr, ok bool) {
	if test.constant == nil {
		return expr{}, false
	}
	holds, ok := c.truth(test)
	chosen = otherwise
	if holds {
		chosen = then
	}
	return chosen, ok && chosen.constant != nil
}

func (c *compiler) logic(e *syntax.Logic, f *frame) (expr, error) {
	left, err := c.expression(e.Left, f)
	if err != nil {
		return expr{}, err
	}
	late := len(c.late)
	right, err := c.expression(e.Right, f)
	if left.constant != nil && c.unhashable == nil {
		if truth, ok := c.truth(left); ok && truth != e.And {
			// The right side is never compiled, even if it has errors.
			c.late = c.late[:late]
			c.notes.problem(err)
			return left, nil
		} else if err == nil && right.constant != nil {
			return right, nil
		}
	}
	return expr{eval: logical(e, left.eval, right.eval)}, err
}

// logical returns a function that evaluates left and, unless that decides, right.
func logical(e *syntax.Logic, left, right eval) eval {
	return func(r *run) (py.Value, error) {
		if err := r.budget.Step(1); err != nil {
			return nil, at(e.Pos, err)
		}
		value, err := left(r)
		if err != nil {
			return nil, err
		}
		truth, err := py.Truth(r.budget, value)
		if err != nil {
			return nil, at(e.Pos, err)
		}
		if truth != e.And {
			return value, nil
		}
		return right(r)
	}
}

func (c *compiler) compare(e *syntax.Compare, f *frame) (expr, error) {
	parts, decided, err := c.comparands(e, f)
	if err != nil {
		return expr{}, err
	}
	if decided {
		return constantOf(py.Bool(false)), nil
	}
	// A chain ends at the first comparison that is false: the rest is not evaluated.
	chain := func(s *state, value func(i int) (py.Value, error)) (py.Value, error) {
		left, err := value(0)
		if err != nil {
			return nil, err
		}
		for i, op := range e.Ops {
			right, err := value(i + 1)
			if err != nil {
				return nil, err
			}
			holds, err := compareOnce(s, op, left, right)
			if err != nil {
				return nil, at(e.Pos, err)
			}
			if !holds {
				return py.Bool(false), nil
			}
			left = right
		}
		return py.Bool(true), nil
	}
	evaluate := func(r *run) (py.Value, error) {
		return chain(r.state, func(i int) (py.Value, error) { return parts[i].eval(r) })
	}
	// A chain is constant if a comparison before its first variable is false.
	return c.fold(nil, func(s *state) (py.Value, error) {
		return chain(s, func(i int) (py.Value, error) {
			if parts[i].constant == nil {
				return nil, errVariable
			}
			return parts[i].constant, nil
		})
	}, evaluate), nil
}

// comparands compiles the operands of comparisons. Decided says that a comparison of constants is false: the rest is never
// compiled, even if it has errors.
func (c *compiler) comparands(e *syntax.Compare, f *frame) (parts []expr, decided bool, err error) {
	late := len(c.late)
	holds := true // all comparisons so far, of constants
	for i, node := range append([]syntax.Expr{e.First}, e.Rest...) {
		part, err := c.expression(node, f)
		if err != nil {
			if !decided || c.unhashable != nil {
				return nil, false, err
			}
			c.notes.problem(err)
			continue
		}
		parts = append(parts, part)
		// A generator can be compared only once, which the fold of the whole comparison does.
		_, once := part.constant.(*py.Generator)
		holds = holds && part.constant != nil && !once && !c.volatile
		if holds && i > 0 {
			result, err := compareOnce(c.folding, e.Ops[i-1], parts[i-1].constant, part.constant)
			holds = err == nil && result
			decided = err == nil && !result
		}
	}
	if decided {
		c.late = c.late[:late]
	}
	return parts, decided, nil
}

// errVariable ends the evaluation of an expression that turns out not to be constant.
var errVariable = errors.New("not a constant")

func compareOnce(s *state, op syntax.CompareOp, left, right py.Value) (bool, error) {
	if op.In || op.NotIn {
		contained, err := py.Contains(s.budget, right, left)
		return contained == op.In, err
	}
	return py.Compare(s.budget, op.Op, left, right)
}

func (c *compiler) concat(e *syntax.Concat, f *frame) (expr, error) {
	escape := c.autoescape && !c.volatile
	return c.operation(e.Pos, f, func(s *state, values []py.Value) (py.Value, error) {
		if escape {
			return markupJoin(s, values)
		}
		return textJoin(s, values)
	}, e.Parts...)
}

func textJoin(s *state, values []py.Value) (py.Value, error) {
	var joined strings.Builder
	for _, value := range values {
		text, err := py.ToStr(s.budget, value)
		if err != nil {
			return nil, err
		}
		if err := s.budget.Append(joined.Len(), len(text)); err != nil {
			return nil, err
		}
		joined.WriteString(text)
	}
	return py.Str(joined.String()), nil
}

// markupJoin is textJoin for escaped output: if one value is Markup, the result is Markup.
func markupJoin(s *state, values []py.Value) (py.Value, error) {
	anyMarkup := false
	for _, value := range values {
		_, markup := value.(py.Markup)
		anyMarkup = anyMarkup || markup
	}
	if !anyMarkup {
		return textJoin(s, values)
	}
	escaped := make([]py.Value, len(values))
	for i, value := range values {
		text, err := py.Escape(s.budget, value)
		if err != nil {
			return nil, err
		}
		escaped[i] = text
	}
	joined, err := textJoin(s, escaped)
	if text, ok := joined.(py.Str); ok {
		return py.Markup(text), nil
	}
	return joined, err
}
