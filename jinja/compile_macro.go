package jinja

import (
	"slices"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// macroCode is a compiled macro, or the body of a call block.
type macroCode struct {
	pos  syntax.Pos
	name string // empty for a caller
	unit *unit

	params []macroParam
	// caller, kwargs and varargs are the positions of these variables, if the body uses them.
	caller, kwargs, varargs *int
	explicitCaller          bool

	enter, body exec
}

// macroParam is one parameter; if it has no default and no argument, its value is undefined.
type macroParam struct {
	name      string
	slot      int
	byDefault eval
}

// macroBody compiles the parts that a macro and a call block have in common.
func (c *compiler) macroBody(statement syntax.Stmt, name string, signature syntax.Signature, statements []syntax.Stmt, f *frame) (*macroCode, error) {
	pos, inner := statement.Position(), f.innerUnit()
	c.notes.scope(statement, inner)
	inner.captures = true
	for _, param := range signature.Params {
		inner.symbols.parameter(param.Name)
	}
	m := &macroCode{pos: pos, name: name, unit: inner.unit}
	if err := m.specials(inner, signature, statements); err != nil {
		return nil, err
	}
	inner.symbols.all(exprNodes(signature.Defaults))
	inner.symbols.stmts(statements)
	m.enter = c.enter(inner)

	required := len(signature.Params) - len(signature.Defaults)
	seen := map[string]bool{}
	for i, param := range signature.Params {
		if seen[param.Name] {
			c.late = append(c.late, &Error{Kind: py.Other, Line: param.Line, Column: param.Column, Message: "the parameter '" + param.Name + "' stands there twice"})
		}
		seen[param.Name] = true
		id, _ := inner.symbols.find(param.Name)
		p := macroParam{name: param.Name, slot: inner.unit.slot(id)}
		if i >= required {
			value, err := c.expression(signature.Defaults[i-required], inner)
			if err != nil {
				return nil, err
			}
			p.byDefault = evaluateAt(param.Pos, value)
		}
		m.params = append(m.params, p)
	}
	var err error
	m.body, err = c.body(statements, inner)
	return m, err
}

// specials adds to the macro those of caller, kwargs and varargs that its body uses and does not declare.
func (m *macroCode) specials(f *frame, signature syntax.Signature, statements []syntax.Stmt) error {
	declared := map[string]bool{}
	for i, param := range signature.Params {
		declared[param.Name] = true
		if param.Name == "caller" {
			m.explicitCaller = true
			if i < len(signature.Params)-len(signature.Defaults) && undeclared(statements, "caller")["caller"] {
				return syntaxError(param.Pos, "the special parameter 'caller' must be left out or have a default")
			}
		}
	}
	used := undeclared(statements, "caller", "kwargs", "varargs")
	for name, slot := range map[string]**int{"caller": &m.caller, "kwargs": &m.kwargs, "varargs": &m.varargs} {
		if used[name] && !declared[name] {
			at := f.unit.slot(f.symbols.parameter(name))
			*slot = &at
		}
	}
	return nil
}

func (c *compiler) macro(s *syntax.Macro, f *frame) (exec, error) {
	code, err := c.macroBody(s, s.Name, s.Signature, s.Body, f)
	if err != nil {
		return nil, err
	}
	id, _ := f.symbols.find(s.Name)
	c.notes.variable(s, id, f)
	to := variable{ref: f.reference(id), name: s.Name, toplevel: f.toplevel}
	return func(r *run) error { return to.set(r, code.bind(r)) }, nil
}

func (c *compiler) callBlock(s *syntax.CallBlock, f *frame) (exec, error) {
	code, err := c.macroBody(s, "", s.Signature, s.Body, f)
	if err != nil {
		return nil, err
	}
	c.depth++
	call, err := c.callExpression(s.Call, f, code)
	if c.depth--; err == nil && c.unhashable != nil {
		err = c.unhashable
	}
	if err != nil {
		return nil, err
	}
	return func(r *run) error {
		value, err := call(r)
		if err != nil {
			return at(s.Pos, err)
		}
		return at(s.Pos, r.printRaw(s.Pos, value))
	}, nil
}

// macro is a macro as a value; it sees the variables of the scope that defines it.
type macro struct {
	code *macroCode
	// home is the scope that defines it.
	home *run
}

func (m *macroCode) bind(r *run) *macro {
	home := *r
	return &macro{code: m, home: &home}
}

// TypeName implements py.Value.
func (*macro) TypeName() string { return "Macro" }

// Repr implements py.Representable.
func (m *macro) Repr(*py.Budget) (string, error) {
	if m.code.name == "" {
		return "<Macro anonymous>", nil
	}
	return "<Macro '" + m.code.name + "'>", nil
}

// Attr implements py.Attributed.
func (m *macro) Attr(_ *py.Budget, name string) (py.Value, bool, error) {
	code := m.code
	switch name {
	case "name":
		if code.name == "" {
			return py.None{}, true, nil
		}
		return py.Str(code.name), true, nil
	case "arguments":
		names := make([]py.Value, len(code.params))
		for i, param := range code.params {
			names[i] = py.Str(param.name)
		}
		return &py.Tuple{Items: names}, true, nil
	case "catch_kwargs":
		return py.Bool(code.kwargs != nil), true, nil
	case "catch_varargs":
		return py.Bool(code.varargs != nil), true, nil
	case "caller":
		return py.Bool(code.caller != nil), true, nil
	case "explicit_caller":
		return py.Bool(code.explicitCaller), true, nil
	}
	return nil, false, nil
}

// Call implements py.Callable.
func (m *macro) Call(b *py.Budget, args py.Args) (py.Value, error) {
	if err := b.Alloc(m.code.unit.size() + 4*valueSize*len(args.Named)); err != nil {
		return nil, err
	}
	r := *m.home
	r.frame = m.code.unit.activate(m.home.frame)
	if err := newMacroArgs(m.code, args).assign(b, r.frame); err != nil {
		return nil, err
	}
	text, err := r.capture(m.code.execute)
	return r.markup(text), err
}

// execute prints the macro, whose arguments have been assigned.
func (m *macroCode) execute(r *run) error {
	if err := r.perform(m.enter); err != nil {
		return err
	}
	if err := m.defaults(r); err != nil {
		return err
	}
	return m.body(r)
}

// defaults sets parameters without an argument to their defaults, in order.
func (m *macroCode) defaults(r *run) error {
	for _, param := range m.params {
		if r.frame.slots[param.slot] != nil {
			continue
		}
		var value py.Value = &py.Undefined{Name: param.name, Hint: "parameter '" + param.name + "' was not provided"}
		if param.byDefault != nil {
			var err error
			if value, err = param.byDefault(r); err != nil {
				return err
			}
		}
		r.frame.slots[param.slot] = value
	}
	return nil
}

// macroArgs are the arguments of one call of a macro.
type macroArgs struct {
	code *macroCode
	pos  []py.Value
	// named has the keyword arguments that are left, in order; places has their positions.
	named  []py.NamedArg
	places map[string]int
}

func newMacroArgs(code *macroCode, args py.Args) *macroArgs {
	a := &macroArgs{code: code, pos: args.Pos, named: slices.Clone(args.Named), places: make(map[string]int, len(args.Named))}
	for i, arg := range a.named {
		a.places[arg.Name] = i
	}
	return a
}

// take removes a named argument and returns its value, or nil.
func (a *macroArgs) take(name string) py.Value {
	i, ok := a.places[name]
	if !ok {
		return nil
	}
	delete(a.places, name)
	value := a.named[i].Value
	a.named[i].Value = nil
	return value
}

// left returns the named arguments that have not been taken.
func (a *macroArgs) left() []py.NamedArg {
	return slices.DeleteFunc(a.named, func(arg py.NamedArg) bool { return arg.Value == nil })
}

// assign sets the parameters and caller, kwargs and varargs to the arguments, in the order in which Jinja does.
func (a *macroArgs) assign(b *py.Budget, frame *activation) error {
	code := a.code
	foundCaller := code.explicitCaller && len(a.pos) >= len(code.params)
	for i, param := range code.params {
		if i < len(a.pos) {
			frame.slots[param.slot] = a.pos[i]
			continue
		}
		frame.slots[param.slot] = a.take(param.name)
		foundCaller = foundCaller || param.name == "caller"
	}
	if code.caller != nil && !foundCaller {
		caller := a.take("caller")
		if _, none := caller.(py.None); caller == nil || none {
			caller = &py.Undefined{Name: "caller", Hint: "No caller defined"}
		}
		frame.slots[*code.caller] = caller
	}
	if code.kwargs != nil {
		rest := py.NewDict()
		for _, arg := range a.left() {
			rest.SetStr(arg.Name, arg.Value)
		}
		frame.slots[*code.kwargs] = rest
	} else if err := a.noneLeft(); err != nil {
		return err
	}
	return a.rest(b, frame)
}

func (a *macroArgs) noneLeft() error {
	left := a.left()
	if len(left) == 0 {
		return nil
	}
	for _, arg := range left {
		if arg.Name == "caller" {
			return raisef("TypeError", "macro '%s' was invoked with two values for the special caller argument", a.code.name)
		}
	}
	return raisef("TypeError", "macro '%s' takes no keyword argument %s", a.code.name, left[0].Label())
}

// rest sets varargs to the positional arguments that are left.
func (a *macroArgs) rest(b *py.Budget, frame *activation) error {
	count := len(a.code.params)
	if a.code.varargs == nil {
		if len(a.pos) > count {
			return raisef("TypeError", "macro '%s' takes not more than %d argument(s)", a.code.name, count)
		}
		return nil
	}
	var rest []py.Value
	if len(a.pos) > count {
		rest = a.pos[count:]
	}
	frame.slots[*a.code.varargs] = &py.Tuple{Items: rest}
	return b.Step(1)
}
