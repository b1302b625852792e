package jinja

import (
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// unknownReads returns the reads of names to which neither the render nor the template assigns a value.
func unknownReads(n *notes, q Question) map[*syntax.Name]bool {
	unknown := map[*syntax.Name]bool{}
	for _, read := range n.reads {
		name := read.Name
		if !q.Names[name] && !isGlobal(name) && !n.assigns(read) {
			unknown[read] = true
		}
	}
	return unknown
}

// assigns reports whether the template assigns to the name of a read, in its scope or in the outermost one.
func (n *notes) assigns(read *syntax.Name) bool {
	return n.cells[read].scope.stores[read.Name] || n.root.stores[read.Name]
}

// variableReads returns the reads of the variables of the render, in the order in which they are compiled.
func variableReads(n *notes, q Question) []Read {
	var reads []Read
	for _, read := range n.reads {
		if q.Names[read.Name] {
			reads = append(reads, Read{Pos: read.Pos, Name: read.Name, Assigned: n.assigns(read)})
		}
	}
	return reads
}

// unknownNames returns the reads that are unknown, in the order in which they are compiled.
func unknownNames(n *notes, absent *absence, q Question) []Unknown {
	var unknown []Unknown
	for _, read := range n.reads {
		if !absent.unknown[read] {
			continue
		}
		unknown = append(unknown, Unknown{
			Pos: read.Pos, Name: read.Name, Hint: n.hint(read.Name, q),
			Harmless:    absent.tested[read.Name] || absent.soft[read] || absent.lenient[read],
			Conditional: absent.conditional[read],
			Expected:    absent.expected[read.Name] || absent.defaulted[read] || absent.guarded[read],
		})
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

// setElsewhere returns the names that the template assigns to anywhere.
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

// setsOutside returns the variables that statements set outside of inner scopes, except those that are set to false.
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
