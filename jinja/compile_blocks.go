package jinja

import (
	"maps"
	"slices"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// block is a named block. It is compiled like a template of its own: it sees the variables of the render, and those around
// it only if it is scoped.
type block struct {
	statement *syntax.Block
	unit      *unit
	body      exec
}

func (c *compiler) compileBlocks() error {
	for _, name := range slices.Sorted(maps.Keys(c.blocks)) {
		block := c.blocks[name]
		f := &frame{symbols: c.analysis.symbols(), unit: newUnit(nil), captures: true}
		enterSelf := c.selfParameter(f, block.statement.Body, name)
		f.symbols.stmts(block.statement.Body)
		body, err := c.scope(f, block.statement.Body)
		if err != nil {
			return err
		}
		block.unit, block.body = f.unit, sequence([]exec{enterSelf, body})
	}
	return nil
}

// selfParameter adds the variables self and super to the frame of the template or of a block, if body uses them.
func (c *compiler) selfParameter(f *frame, body []syntax.Stmt, blockName string) exec {
	names := []string{"self", "super"}
	if blockName == "" {
		names = names[:1]
	}
	used := undeclared(body, names...)
	var enter []exec
	if used["self"] {
		slot := f.unit.slot(f.symbols.parameter("self"))
		enter = append(enter, func(r *run) error {
			r.frame.slots[slot] = &selfReference{*r}
			return nil
		})
	}
	if used["super"] {
		slot := f.unit.slot(f.symbols.parameter("super"))
		enter = append(enter, func(r *run) error {
			r.frame.slots[slot] = noParent(blockName)
			return nil
		})
	}
	if len(enter) == 0 {
		return nil
	}
	return sequence(enter)
}

func noParent(name string) *py.Undefined {
	return &py.Undefined{Name: "super", Hint: "there is no parent block called '" + name + "'"}
}

func (c *compiler) block(s *syntax.Block, f *frame) (exec, error) {
	if f.toplevel && c.extended {
		return nil, nil
	}
	block := c.blocks[s.Name]
	locals := map[string]reference{}
	if s.Scoped {
		for name, id := range f.symbols.visible() {
			locals[name] = f.reference(id)
		}
	}
	return func(r *run) error {
		if s.Required {
			return at(s.Pos, raisef("TemplateRuntimeError", "the required block '%s' has no content", s.Name))
		}
		inner := *r
		if s.Scoped {
			values := make(map[string]py.Value, len(locals))
			for name, ref := range locals {
				values[name] = *ref.in(r.frame)
			}
			if err := r.budget.Alloc(6 * valueSize * (len(locals) + len(r.scope.variables) + len(r.scope.set))); err != nil {
				return at(s.Pos, err)
			}
			inner.scope = r.scope.derive(values)
		}
		return at(s.Pos, block.execute(&inner))
	}, nil
}

// execute prints the block to the output of r.
func (b *block) execute(r *run) error {
	if err := r.budget.Enter(); err != nil {
		return err
	}
	defer r.budget.Leave()
	if err := r.budget.Alloc(b.unit.size()); err != nil {
		return err
	}
	inner := *r
	inner.frame = b.unit.activate(nil)
	return b.body(&inner)
}

// selfReference is the variable self: its attributes are the blocks.
type selfReference struct{ home run }

// TypeName implements py.Value.
func (*selfReference) TypeName() string { return "TemplateReference" }

// Repr implements py.Representable.
func (*selfReference) Repr(*py.Budget) (string, error) { return "<TemplateReference None>", nil }

// Attr implements py.Attributed.
func (s *selfReference) Attr(_ *py.Budget, name string) (py.Value, bool, error) {
	block, ok := s.home.scope.blocks[name]
	if !ok {
		return nil, false, nil
	}
	return &blockReference{block, s.home}, true, nil
}

// blockReference is a block as a value; a call returns what the block prints.
type blockReference struct {
	block *block
	home  run
}

// TypeName implements py.Value.
func (*blockReference) TypeName() string { return "BlockReference" }

// Attr implements py.Attributed.
func (b *blockReference) Attr(_ *py.Budget, name string) (py.Value, bool, error) {
	switch name {
	case "name":
		return py.Str(b.block.statement.Name), true, nil
	case "super":
		return noParent(b.block.statement.Name), true, nil
	}
	return nil, false, nil
}

// Call implements py.Callable.
func (b *blockReference) Call(_ *py.Budget, args py.Args) (py.Value, error) {
	if _, err := py.Bind("__call__", args); err != nil {
		return nil, err
	}
	text, err := b.home.capture(b.block.execute)
	return b.home.markup(text), err
}

// other compiles a statement that needs other templates: executing it is an error. (There are no other templates; a survey
// reports it before any render.)
func (c *compiler) other(s *syntax.Other, f *frame) (exec, error) {
	if s.Tag == "extends" {
		if !f.toplevel {
			return nil, syntaxError(s.Pos, "extends may stand only at the top level")
		}
		c.extended = c.extended || f.rootlevel
	}
	template, err := c.expression(s.Template, f)
	if err != nil {
		return nil, err
	}
	refused := &Error{
		Kind: py.Type, Line: s.Line, Column: s.Column,
		Message: "'" + s.Tag + "' is not available: a template stands alone and cannot use others",
	}
	c.notes.problem(refused)
	return func(r *run) error {
		name, err := template.eval(r)
		if err != nil {
			return at(s.Pos, err)
		}
		if s.Tag == "include" {
			if empty, err := selectsNothing(r, name); err != nil || empty && s.IgnoreMissing {
				return at(s.Pos, err)
			} else if empty {
				return at(s.Pos, raisef("TemplatesNotFound", "there is nothing to include"))
			}
		}
		return refused
	}, nil
}

// selectsNothing reports whether an include has an empty list of templates.
func selectsNothing(r *run, name py.Value) (bool, error) {
	if _, ok := py.TextOf(name); ok || isUndefined(name) {
		return false, nil
	}
	some, err := py.Truth(r.budget, name)
	return !some, err
}

// autoescapeBlock compiles {% autoescape … %}.
func (c *compiler) autoescapeBlock(s *syntax.Autoescape, f *frame) (exec, error) {
	inner := f.inner()
	inner.symbols.all(s.Children())
	value, err := c.expression(s.Value, inner)
	if err != nil {
		return nil, err
	}
	autoescape, volatile := c.autoescape, c.volatile
	defer func() { c.autoescape, c.volatile = autoescape, volatile }()
	if value.constant == nil {
		c.volatile = true
	} else if c.autoescape, err = py.Truth(c.folding.budget, value.constant); err != nil {
		return nil, at(s.Pos, err)
	}
	body, err := c.body(s.Body, inner)
	if err != nil {
		return nil, err
	}
	enter, leave, on := c.enter(inner), c.leave(inner), evaluateAt(s.Pos, value)
	return func(r *run) error {
		if err := r.perform(enter); err != nil {
			return err
		}
		value, err := on(r)
		if err != nil {
			return err
		}
		before := r.autoescape
		defer func() { r.autoescape = before }()
		if r.autoescape, err = py.Truth(r.budget, value); err != nil {
			return at(s.Pos, err)
		}
		if err := body(r); err != nil {
			return err
		}
		return r.perform(leave)
	}, nil
}

// escaping returns a function that reports, at run time, whether output is escaped.
func (c *compiler) escaping() func(r *run) bool {
	if c.volatile {
		return func(r *run) bool { return r.autoescape }
	}
	fixed := c.autoescape
	return func(*run) bool { return fixed }
}
