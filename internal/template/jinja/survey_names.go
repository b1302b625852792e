package jinja

import (
	"github.com/albertofaria/pav/internal/template/jinja/py"
	"github.com/albertofaria/pav/internal/template/jinja/syntax"
)

// unknownNames returns the reads of names that neither the render nor the template gives a value.
func unknownNames(n *notes, absent *absence, q Question) []Unknown {
	var unknown []Unknown
	for _, read := range n.reads {
		name := read.Name
		if q.Names[name] || isGlobal(name) || n.cells[read].scope.stores[name] || n.root.stores[name] {
			continue
		}
		unknown = append(unknown, Unknown{Pos: read.Pos, Name: name, Harmless: absent.tested[name] || absent.harmless[read], Hint: n.hint(name, q)})
	}
	return unknown
}

func isGlobal(name string) bool {
	_, found := builtinGlobals[name]
	return found || name == lipsum
}

// hint returns what to add to a message about a name that is unknown.
func (n *notes) hint(name string, q Question) string {
	if filter, ok := pythonFunctions[name]; ok {
		return "; there is a filter '" + filter + "'"
	}
	if n.setElsewhere()[name] {
		return ": what is set inside a loop, a macro or a block is not seen outside of it; use {% set ns = namespace(" + name + "=…) %} and {% set ns." + name + " = … %}"
	}
	return suggest(name, q.Names)
}

// setElsewhere returns the names that the template gives a value anywhere.
func (n *notes) setElsewhere() map[string]bool {
	if n.set == nil {
		n.set = map[string]bool{}
		for node := range n.cells {
			if name, ok := node.(*syntax.Name); ok && name.Use == syntax.Store {
				n.set[name.Name] = true
			}
		}
	}
	return n.set
}

// setsOutside returns the variables that statements set outside of inner scopes, but for those that are set to false.
func setsOutside(statements []syntax.Stmt) map[string]bool {
	sets := map[string]bool{}
	var visit func(statements []syntax.Stmt)
	visit = func(statements []syntax.Stmt) {
		for _, statement := range statements {
			switch s := statement.(type) {
			case *syntax.Assign:
				if value, ok := s.Value.(*syntax.Const); !ok || value.Value != py.Bool(false) {
					addTargets(sets, s.Target)
				}
			case *syntax.AssignBlock:
				addTargets(sets, s.Target)
			case *syntax.Macro:
				sets[s.Name] = true
			case *syntax.If:
				for _, branch := range s.Branches {
					visit(branch.Body)
				}
				visit(s.Else)
			}
		}
	}
	visit(statements)
	return sets
}

func addTargets(sets map[string]bool, target syntax.Node) {
	if name, ok := target.(*syntax.Name); ok {
		sets[name.Name] = true
	}
	for _, child := range target.Children() {
		addTargets(sets, child)
	}
}

// absence is where a template provides for names that have no value.
type absence struct {
	// tested are the names of which it asks somewhere whether they are defined, or true.
	tested map[string]bool
	// harmless are the reads that have a default, and those that only ask whether there is anything.
	harmless map[syntax.Node]bool
}

func lookForAbsence(body []syntax.Stmt) *absence {
	a := &absence{map[string]bool{}, map[syntax.Node]bool{}}
	for _, statement := range body {
		a.visit(statement)
	}
	return a
}

func (a *absence) visit(node syntax.Node) { //nolint:gocyclo // one case a node
	switch n := node.(type) {
	case *syntax.Filter:
		if isDefault(n) {
			a.harmless[n.Input] = true
		}
	case *syntax.Test:
		if asksForAbsence(n) {
			a.test(n.Input)
		}
	case *syntax.If:
		for _, branch := range n.Branches {
			a.truth(branch.Test)
		}
	case *syntax.Cond:
		a.truth(n.Test)
	case *syntax.Logic:
		if !n.And {
			a.truth(n.Left) // What is not true is not the result.
		}
	case *syntax.Not:
		a.truth(n.Operand)
	case *syntax.For:
		a.harmless[n.Iter] = true
	case *syntax.Compare:
		a.comparison(n)
	}
	for _, child := range node.Children() {
		a.visit(child)
	}
}

func (a *absence) test(tested syntax.Expr) {
	a.harmless[tested] = true
	if name, ok := tested.(*syntax.Name); ok {
		a.tested[name.Name] = true
	}
}

// truth notes that an expression is only asked whether it is true, which what is undefined is not.
func (a *absence) truth(test syntax.Expr) {
	if a.harmless[test] {
		return
	}
	a.test(test)
	if logic, ok := test.(*syntax.Logic); ok {
		a.truth(logic.Left)
		a.truth(logic.Right)
	}
}

// comparison notes that its operands are compared for equality, which any value can be.
func (a *absence) comparison(c *syntax.Compare) {
	for _, op := range c.Ops {
		if !op.In && !op.NotIn && op.Op != py.OpEq && op.Op != py.OpNe {
			return
		}
	}
	a.harmless[c.First] = true
	for _, operand := range c.Rest {
		a.harmless[operand] = true
	}
}

func isDefault(f *syntax.Filter) bool { return f.Name == "default" || f.Name == "d" }

func asksForAbsence(t *syntax.Test) bool { return t.Name == "defined" || t.Name == "undefined" }
