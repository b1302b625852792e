package jinja

import (
	"slices"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// loopCode is a compiled for statement.
type loopCode struct {
	pos  syntax.Pos
	unit *unit // of a recursive loop, or nil

	iterable eval
	// keep returns the items that pass the test; nil if there is no test.
	keep   func(r *run, items py.Iterator) py.Iterator
	target target
	// special is the position of the variable loop, if the body of the loop uses it.
	special *reference

	enter, body, leave              exec
	elseEnter, otherwise, elseLeave exec
	hasElse                         bool
	escaping                        func(r *run) bool
}

func (c *compiler) forLoop(s *syntax.For, f *frame) (exec, error) {
	code, loopFrame, err := c.loopHead(s, f)
	if err != nil {
		return nil, err
	}
	if name := loopAssigned(s); name != nil {
		return nil, syntaxError(name.Pos, "cannot assign to the special variable 'loop' inside a for loop")
	}
	elseFrame := *loopFrame
	elseFrame.symbols = newSymbols(f.symbols)
	elseFrame.symbols.stmts(s.Else)

	if code.target, err = c.target(s.Target, loopFrame); err != nil {
		return nil, err
	}
	iterable, err := c.expression(s.Iter, f)
	if err != nil {
		return nil, err
	}
	code.iterable = evaluateAt(s.Iter.Position(), iterable)
	code.enter = c.enter(loopFrame)
	if code.body, err = c.body(s.Body, loopFrame); err != nil {
		return nil, err
	}
	code.leave = c.leave(loopFrame)
	if len(s.Else) > 0 {
		code.hasElse = true
		code.elseEnter = c.enter(&elseFrame)
		if code.otherwise, err = c.body(s.Else, &elseFrame); err != nil {
			return nil, err
		}
		code.elseLeave = c.leave(&elseFrame)
	}
	if s.Recursive {
		return code.recursive, nil
	}
	return code.once, nil
}

// loopHead compiles what comes before the body, and returns the frame of the body.
func (c *compiler) loopHead(s *syntax.For, f *frame) (*loopCode, *frame, error) {
	code := &loopCode{pos: s.Pos, escaping: c.escaping()}
	inner := f.inner()
	if s.Recursive {
		inner = f.innerUnit()
		code.unit = inner.unit
	}
	c.notes.scope(s, inner)
	if s.Recursive || undeclared(s.Body, "loop")["loop"] || len(c.blocks) > 0 && hasScopedBlock(s) {
		ref := inner.reference(inner.symbols.parameter("loop"))
		code.special = &ref
	}
	inner.symbols.params(s.Target)
	inner.symbols.stmts(s.Body)

	if s.Test == nil {
		return code, inner, nil
	}
	keep, err := c.loopTest(s, f)
	code.keep = keep
	return code, inner, err
}

// loopTest compiles the test of a loop, which has an activation of its own: it may run before the body.
func (c *compiler) loopTest(s *syntax.For, f *frame) (func(r *run, items py.Iterator) py.Iterator, error) {
	inner := f.innerUnit()
	inner.symbols.params(s.Target)
	inner.symbols.visit(s.Test)
	to, err := c.target(s.Target, inner)
	if err != nil {
		return nil, err
	}
	test, err := c.expression(s.Test, inner)
	if err != nil {
		return nil, err
	}
	unit, enter, condition, pos := inner.unit, c.enter(inner), evaluateAt(s.Test.Position(), test), s.Pos
	return func(r *run, items py.Iterator) py.Iterator {
		own := *r
		own.frame = nil
		passes := func(item py.Value) (bool, error) {
			if own.frame == nil {
				own.frame = unit.activate(r.frame)
				if err := own.perform(enter); err != nil {
					return false, err
				}
			}
			if err := to.set(&own, item); err != nil {
				return false, at(pos, err)
			}
			value, err := condition(&own)
			if err != nil {
				return false, err
			}
			return py.Truth(own.budget, value)
		}
		return &py.Generator{Type: "generator", Fn: func(b *py.Budget) (py.Value, bool, error) { return nextPassing(b, items, passes) }}
	}, nil
}

// nextPassing returns the next item that passes.
func nextPassing(b *py.Budget, items py.Iterator, passes func(item py.Value) (bool, error)) (py.Value, bool, error) {
	for {
		item, ok, err := items.Next(b)
		if err != nil || !ok {
			return nil, false, err
		}
		if passed, err := passes(item); err != nil || passed {
			return item, err == nil, err
		}
		if err := b.Step(1); err != nil {
			return nil, false, err
		}
	}
}

// loopAssigned returns the name loop in a statement of s that assigns to it, or nil.
func loopAssigned(node syntax.Node) *syntax.Name {
	if name, ok := node.(*syntax.Name); ok && name.Use == syntax.Store && name.Name == "loop" {
		return name
	}
	for _, child := range node.Children() {
		if name := loopAssigned(child); name != nil {
			return name
		}
	}
	return nil
}

func hasScopedBlock(node syntax.Node) bool {
	if block, ok := node.(*syntax.Block); ok && block.Scoped {
		return true
	}
	return slices.ContainsFunc(node.Children(), hasScopedBlock)
}

// once executes a loop that is not recursive.
func (l *loopCode) once(r *run) error {
	items, err := l.iterable(r)
	if err != nil {
		return err
	}
	return l.iterate(r, items, nil, 0)
}

// recursive executes a recursive loop, which its body can call.
func (l *loopCode) recursive(r *run) error {
	items, err := l.iterable(r)
	if err != nil {
		return err
	}
	value, err := l.call(r, items, 0)
	if err != nil {
		return at(l.pos, err)
	}
	return at(l.pos, r.printRaw(l.pos, value))
}

// call executes a recursive loop over items and returns what it prints. R is the run around the loop.
func (l *loopCode) call(r *run, items py.Value, depth int) (py.Value, error) {
	if err := r.budget.Enter(); err != nil {
		return nil, err
	}
	defer r.budget.Leave()
	if err := r.budget.Alloc(l.unit.size()); err != nil {
		return nil, err
	}
	inner := *r
	inner.frame = l.unit.activate(r.frame)
	recurse := func(_ *py.Budget, items py.Value, depth int) (py.Value, error) { return l.call(r, items, depth) }
	text, err := inner.capture(func(r *run) error { return l.iterate(r, items, recurse, depth) })
	if l.escaping(r) {
		return py.Markup(text), err
	}
	return py.Str(text), err
}

// iterate executes the body for each of items or, if there are none, the else part.
func (l *loopCode) iterate(r *run, items py.Value, recurse recursion, depth int) error {
	source, err := l.source(r, items)
	if err != nil {
		return at(l.pos, err)
	}
	next := source.Next
	var special *loopContext
	if l.special != nil {
		special = newLoopContext(items, source, l.keep != nil, recurse, depth)
		next = special.Next
	}
	empty := true
	for {
		item, ok, err := next(r.budget)
		if err != nil {
			return at(l.pos, err)
		}
		if !ok {
			break
		}
		empty = false
		if err := l.one(r, item, special); err != nil {
			return err
		}
	}
	if err := r.perform(l.leave); err != nil {
		return err
	}
	if !empty || !l.hasElse {
		return nil
	}
	if err := r.perform(l.elseEnter); err != nil {
		return err
	}
	if err := l.otherwise(r); err != nil {
		return err
	}
	return r.perform(l.elseLeave)
}

// source returns the items that pass the loop's test.
func (l *loopCode) source(r *run, items py.Value) (py.Iterator, error) {
	source, err := py.Iterate(r.budget, items)
	if err != nil || l.keep == nil {
		return source, err
	}
	if l.unit == nil {
		return l.keep(r, source), nil
	}
	// The test belongs to the code around the loop, not to the variables that each call of a recursive loop has.
	outside := *r
	outside.frame = r.frame.outer
	return l.keep(&outside, source), nil
}

// one executes the body for item.
func (l *loopCode) one(r *run, item py.Value, special *loopContext) error {
	if err := r.budget.Step(1); err != nil {
		return at(l.pos, err)
	}
	if err := at(l.pos, l.target.set(r, item)); err != nil {
		return err
	}
	if special != nil {
		*l.special.in(r.frame) = special
	}
	if err := r.perform(l.enter); err != nil {
		return err
	}
	return l.body(r)
}
