package jinja

import (
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

func (c *compiler) ifElse(s *syntax.If, f *frame) (exec, error) {
	type branch struct {
		test eval
		body exec
	}
	f = f.softened()
	branches := make([]branch, len(s.Branches))
	for i, from := range s.Branches {
		test, err := c.expression(from.Test, f)
		if err != nil {
			return nil, err
		}
		body, err := c.body(from.Body, f)
		if err != nil {
			return nil, err
		}
		branches[i] = branch{evaluateAt(from.Test.Position(), test), body}
	}
	otherwise, err := c.body(s.Else, f)
	if err != nil {
		return nil, err
	}
	return func(r *run) error {
		for _, branch := range branches {
			value, err := branch.test(r)
			if err != nil {
				return err
			}
			if holds, err := py.Truth(r.budget, value); err != nil {
				return at(s.Pos, err)
			} else if holds {
				return branch.body(r)
			}
		}
		return otherwise(r)
	}, nil
}

func (c *compiler) assign(s *syntax.Assign, f *frame) (exec, error) {
	to, err := c.target(s.Target, f)
	if err != nil {
		return nil, err
	}
	value, err := c.expression(s.Value, f)
	if err != nil {
		return nil, err
	}
	source := evaluateAt(s.Value.Position(), value)
	return func(r *run) error {
		if err := to.check(r); err != nil {
			return at(s.Pos, err)
		}
		value, err := source(r)
		if err != nil {
			return err
		}
		return at(s.Pos, to.set(r, value))
	}, nil
}

func (c *compiler) assignBlock(s *syntax.AssignBlock, f *frame) (exec, error) {
	inner := f.inner()
	inner.captures = true
	inner.symbols.stmts(s.Body)
	body, err := c.scope(inner, s.Body)
	if err != nil {
		return nil, err
	}
	to, err := c.target(s.Target, f)
	if err != nil {
		return nil, err
	}
	filtered, err := c.captured(s.Filter, inner)
	if err != nil {
		return nil, err
	}
	leave := c.leave(inner)
	return func(r *run) error {
		text, err := r.capture(body)
		if err != nil {
			return err
		}
		if err := to.check(r); err != nil {
			return at(s.Pos, err)
		}
		value, err := filtered(r, py.Str(text))
		if err == nil && r.autoescape {
			text, err = py.ToStr(r.budget, value)
			value = py.Markup(text)
		}
		if err != nil {
			return at(s.Pos, err)
		}
		if err := to.set(r, value); err != nil {
			return at(s.Pos, err)
		}
		return r.perform(leave)
	}, nil
}

func (c *compiler) filterBlock(s *syntax.FilterBlock, f *frame) (exec, error) {
	inner := f.inner()
	inner.symbols.all(s.Children())
	body, err := c.scope(inner, s.Body)
	if err != nil {
		return nil, err
	}
	filtered, err := c.captured(s.Filter, inner)
	if err != nil {
		return nil, err
	}
	leave := c.leave(inner)
	return func(r *run) error {
		text, err := r.capture(body)
		if err != nil {
			return err
		}
		value, err := filtered(r, py.Str(text))
		if err != nil {
			return at(s.Pos, err)
		}
		if err := r.printRaw(s.Pos, value); err != nil {
			return at(s.Pos, err)
		}
		return r.perform(leave)
	}, nil
}

// printRaw prints the result of a filter block, a call block or a recursive loop, which is not finalized; it must be text.
func (r *run) printRaw(pos syntax.Pos, value py.Value) error {
	switch text := value.(type) {
	case py.Str:
		return r.print(string(text))
	case py.Markup:
		return r.print(string(text))
	}
	if r.out.failed == nil {
		r.out.failed = at(pos, raisef("TypeError", "expected text to print, got %s", value.TypeName()))
	}
	return nil
}

// captured compiles a chain of filters for the output of a statement; filter may be nil.
func (c *compiler) captured(filter syntax.Expr, f *frame) (func(r *run, collected py.Value) (py.Value, error), error) {
	if filter == nil {
		return func(_ *run, collected py.Value) (py.Value, error) { return collected, nil }, nil
	}
	value, err := c.expression(filter, f)
	if err != nil {
		return nil, err
	}
	escaping := c.escaping()
	return func(r *run, collected py.Value) (py.Value, error) {
		if text, ok := collected.(py.Str); ok && escaping(r) {
			collected = py.Markup(text)
		}
		inner := *r
		inner.collected = collected
		return value.eval(&inner)
	}, nil
}

func (c *compiler) with(s *syntax.With, f *frame) (exec, error) {
	inner := f.inner()
	inner.symbols.all(exprNodes(s.Targets))
	inner.symbols.stmts(s.Body)
	var bind []exec
	for i, target := range s.Targets {
		to, err := c.target(target, inner)
		if err != nil {
			return nil, err
		}
		value, err := c.expression(s.Values[i], f)
		if err != nil {
			return nil, err
		}
		from := evaluateAt(s.Values[i].Position(), value)
		bind = append(bind, func(r *run) error {
			value, err := from(r)
			if err != nil {
				return err
			}
			return at(target.Position(), to.set(r, value))
		})
	}
	enter := c.enter(inner)
	body, err := c.body(s.Body, inner)
	if err != nil {
		return nil, err
	}
	return sequence([]exec{enter, sequence(bind), body, c.leave(inner)}), nil
}

func exprNodes(items []syntax.Expr) []syntax.Node {
	nodes := make([]syntax.Node, len(items))
	for i, item := range items {
		nodes[i] = item
	}
	return nodes
}
