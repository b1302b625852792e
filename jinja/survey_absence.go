package jinja

import (
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// absence has the places where a template expects that a name has no value, and where that does no harm.
type absence struct {
	question Question
	// unknown has the reads of names to which nothing assigns a value.
	unknown map[*syntax.Name]bool
	// tested has the names that the template tests somewhere for being defined or true.
	tested map[string]bool
	// asked has the expressions that it tests for being defined or true, and defaulted those with a default.
	asked, defaulted map[syntax.Node]bool
	// expected has the names that it tests somewhere for being defined.
	expected map[string]bool
	// soft has the expressions that may be undefined without an error at that place.
	soft map[syntax.Node]bool
	// lenient has the reads that a render may never reach, for a visible reason: they are in a macro, or depend on whether
	// something is defined, as guarded ones do. Conditional ones depend on whether something exists.
	lenient, guarded, conditional map[*syntax.Name]bool
	// optional has the places of filters and tests whose existence the template tests.
	optional map[syntax.Pos]bool
	// answers has the variables that are set to whether something is defined.
	answers map[string]bool
	// conditions caches what is known about conditions.
	conditions map[syntax.Node]condition

	// at is what is true at the current place; macros is how many macros are around it.
	at     condition
	macros int
}

// condition is what a condition tests.
type condition struct {
	// defined: whether anything is defined; there: whether an object or an unknown name is true or of some type;
	// exists: whether there is a filter or a test.
	defined, there, exists bool
}

func (c condition) or(d condition) condition {
	return condition{c.defined || d.defined, c.there || d.there, c.exists || d.exists}
}

func lookForAbsence(body []syntax.Stmt, unknown map[*syntax.Name]bool, q Question) *absence {
	a := &absence{
		question: q, unknown: unknown, tested: map[string]bool{}, asked: map[syntax.Node]bool{}, soft: map[syntax.Node]bool{},
		defaulted: map[syntax.Node]bool{}, expected: map[string]bool{}, lenient: map[*syntax.Name]bool{},
		guarded: map[*syntax.Name]bool{}, conditional: map[*syntax.Name]bool{}, optional: map[syntax.Pos]bool{},
		answers: map[string]bool{}, conditions: map[syntax.Node]condition{},
	}
	a.statements(body)
	return a
}

// under walks code that is executed only if a condition is true.
func (a *absence) under(c condition, walk func()) {
	before := a.at
	a.at = before.or(c)
	walk()
	a.at = before
}

// asks returns what a condition tests.
func (a *absence) asks(test syntax.Node) condition {
	if known, ok := a.conditions[test]; ok {
		return known
	}
	var found condition
	switch e := test.(type) {
	case *syntax.Name:
		found = condition{defined: a.answers[e.Name], there: a.mayLack(e)}
	case *syntax.Test:
		found = condition{defined: asksForAbsence(e), exists: e.Name == "filter" || e.Name == "test"}
	case *syntax.Attribute, *syntax.Item:
		// Reading a part of an object does not test the object.
		return condition{}
	}
	for _, child := range test.Children() {
		found = found.or(a.asks(child))
	}
	a.conditions[test] = found
	return found
}

// mayLack reports whether this template, or another one in the same place, may lack this name.
func (a *absence) mayLack(name *syntax.Name) bool {
	return a.question.Objects[name.Name] || a.unknown[name]
}

func (a *absence) statements(body []syntax.Stmt) {
	for _, statement := range body {
		a.statement(statement)
	}
}

func (a *absence) statement(statement syntax.Stmt) {
	switch s := statement.(type) {
	case *syntax.Output:
		for _, item := range s.Items {
			a.expr(item, true)
		}
	case *syntax.If:
		a.branches(s)
	case *syntax.For:
		a.loop(s)
	case *syntax.Assign:
		a.assign(s)
	case *syntax.AssignBlock:
		a.filterOf(s.Filter)
		a.statements(s.Body)
	case *syntax.Macro:
		a.defaults(s.Signature)
		a.macros++
		a.statements(s.Body)
		a.macros--
	case *syntax.CallBlock:
		a.expr(s.Call, true)
		a.defaults(s.Signature)
		a.statements(s.Body)
	case *syntax.FilterBlock:
		a.filterOf(s.Filter)
		a.statements(s.Body)
	case *syntax.With:
		for _, value := range s.Values {
			a.expr(value, false)
		}
		a.statements(s.Body)
	case *syntax.Autoescape:
		a.expr(s.Value, false)
		a.statements(s.Body)
	case *syntax.Block:
		a.statements(s.Body)
	case *syntax.Other:
		a.expr(s.Template, false)
	}
}

func (a *absence) defaults(s syntax.Signature) {
	for _, value := range s.Defaults {
		a.expr(value, false)
	}
}

// filterOf walks the filter of a block; there may be none.
func (a *absence) filterOf(filter syntax.Expr) {
	if filter != nil {
		a.expr(filter, false)
	}
}

// branches walks an if; what a test asks for applies to all later branches.
func (a *absence) branches(s *syntax.If) {
	before := a.at
	for _, branch := range s.Branches {
		a.truth(branch.Test)
		a.expr(branch.Test, false)
		a.at = a.at.or(a.asks(branch.Test))
		a.statements(branch.Body)
	}
	a.statements(s.Else)
	a.at = before
}

func (a *absence) loop(s *syntax.For) {
	a.expr(s.Iter, false)
	var asked condition
	if s.Test != nil {
		a.truth(s.Test)
		a.expr(s.Test, false)
		asked = a.asks(s.Test)
	}
	a.under(asked, func() { a.statements(s.Body) })
	a.statements(s.Else)
}

// assign walks a set: the value may be undefined, unless it is unpacked or has to be a boolean.
func (a *absence) assign(s *syntax.Assign) {
	target, isName := s.Target.(*syntax.Name)
	_, taken := s.Target.(*syntax.Tuple)
	if isName && a.asks(s.Value).defined {
		a.answers[target.Name] = true
	}
	a.expr(s.Value, taken || isName && a.question.Booleans[target.Name])
}

// expr walks an expression; hard says that a render fails if its value is undefined.
func (a *absence) expr(node syntax.Expr, hard bool) {
	if !hard {
		a.soft[node] = true
	}
	switch e := node.(type) {
	case *syntax.Name:
		a.lenient[e] = a.macros > 0 || a.at.defined
		a.guarded[e], a.conditional[e] = a.at.defined, a.at.there
	case *syntax.Attribute:
		a.expr(e.Object, true)
	case *syntax.Item:
		a.expr(e.Object, true)
		a.expr(e.Key, hard)
	case *syntax.Cond:
		a.truth(e.Test)
		a.expr(e.Test, false)
		a.under(a.asks(e.Test), func() {
			a.expr(e.Then, hard)
			if e.Else != nil {
				a.expr(e.Else, hard)
			}
		})
	case *syntax.Logic:
		if !e.And {
			a.truth(e.Left) // What is not true is not the result.
		}
		a.expr(e.Left, hard && e.And && !a.asked[e.Left])
		a.under(a.asks(e.Left), func() { a.expr(e.Right, hard) })
	case *syntax.Not:
		a.truth(e.Operand)
		a.expr(e.Operand, false)
	case *syntax.Filter:
		a.filter(e, hard)
	case *syntax.Test:
		a.test(e)
	case *syntax.Call:
		a.call(e)
	case *syntax.Compare:
		a.comparison(e)
	case *syntax.Binary:
		a.expr(e.Left, true)
		_, isText := constantString(e.Left)
		a.expr(e.Right, e.Op != py.OpMod || !isText)
	case *syntax.Unary, *syntax.Slice:
		a.operands(node, true)
	default: // lists, mappings and ~ take anything
		a.operands(node, false)
	}
}

func (a *absence) operands(node syntax.Node, hard bool) {
	for _, child := range node.Children() {
		if operand, ok := child.(syntax.Expr); ok {
			a.expr(operand, hard)
		}
	}
}

// failing has the filters that fail for an undefined value, and passing those that return an undefined value for it. Other
// filters treat it as empty.
var (
	failing = set("abs", "attr", "dictsort", "filesizeformat", "float", "indent", "int", "round", "tojson", "wordwrap", "xmlattr")
	passing = set("first", "last", "max", "min", "random", "truncate")
)

func (a *absence) filter(e *syntax.Filter, hard bool) {
	if a.at.exists {
		a.optional[e.Pos] = true
	}
	if e.Input != nil {
		a.defaulted[e.Input] = isDefault(e)
		_, known := builtinFilters[e.Name]
		a.expr(e.Input, failing[e.Name] || a.question.Words[e.Name] || hard && (passing[e.Name] || !known))
	}
	a.args(e.Args, false)
}

// failingTests has the tests that fail for an undefined value.
var failingTests = set("divisibleby", "even", "ge", "greaterthan", "gt", "le", "lessthan", "lt", "odd")

func (a *absence) test(e *syntax.Test) {
	if a.at.exists {
		a.optional[e.Pos] = true
	}
	if asksForAbsence(e) {
		a.ask(e.Input)
		if name, ok := e.Input.(*syntax.Name); ok {
			a.expected[name.Name] = true
		}
	}
	a.expr(e.Input, failingTests[e.Name])
	a.args(e.Args, false)
}

// call walks a call: an undefined value can be passed to macros and methods, but not to the functions of the render.
func (a *absence) call(e *syntax.Call) {
	a.expr(e.Function, true)
	name, ok := e.Function.(*syntax.Name)
	a.args(e.Args, ok && (name.Name == "range" || a.question.Functions[name.Name]))
}

func (a *absence) args(args syntax.Args, hard bool) {
	for _, arg := range args.Pos {
		a.expr(arg, hard)
	}
	for _, arg := range args.Named {
		a.expr(arg.Value, hard)
	}
	if args.Star != nil {
		a.expr(args.Star, false)
	}
	if args.StarStar != nil {
		a.expr(args.StarStar, true)
	}
}

// comparison walks a chain of comparisons: any value can be tested for equality and membership, but not ordered.
func (a *absence) comparison(c *syntax.Compare) {
	ordered := func(i int) bool {
		if i < 0 || i >= len(c.Ops) {
			return false
		}
		op := c.Ops[i]
		return !op.In && !op.NotIn && op.Op != py.OpEq && op.Op != py.OpNe
	}
	a.expr(c.First, ordered(0))
	for i, operand := range c.Rest {
		a.expr(operand, ordered(i) || ordered(i+1))
	}
}

// ask notes that the template expects that what an expression reads may be missing.
func (a *absence) ask(tested syntax.Expr) {
	a.asked[tested] = true
	if name, ok := tested.(*syntax.Name); ok {
		a.tested[name.Name] = true
	}
}

// truth notes that an expression is only tested for being true; an undefined value is false.
func (a *absence) truth(test syntax.Expr) {
	if a.asked[test] {
		return
	}
	a.ask(test)
	if logic, ok := test.(*syntax.Logic); ok {
		a.truth(logic.Left)
		a.truth(logic.Right)
	}
}

func isDefault(f *syntax.Filter) bool { return f.Name == "default" || f.Name == "d" }

func asksForAbsence(t *syntax.Test) bool { return t.Name == "defined" || t.Name == "undefined" }
