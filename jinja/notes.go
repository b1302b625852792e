package jinja

import (
	"errors"

	"github.com/albertofaria/pav/jinja/syntax"
)

// cell is a variable of one scope; another scope's variable of the same name is another cell.
type cell struct {
	scope *symbols
	name  string
}

// load returns how the scope gets the first value of the variable.
func (c cell) load() load { return c.scope.loads[identifier{c.scope.level, c.name}] }

// of returns the variable, in the scope or one around it, that an alias refers to.
func (c cell) of(id identifier) cell {
	scope := c.scope
	for scope.level != id.level {
		scope = scope.parent
	}
	return cell{scope, id.name}
}

// notes has what the compiler finds out about a template for a survey: what its names refer to. It is nil for templates
// that are compiled only to be rendered; then its methods do nothing.
type notes struct {
	root     *symbols
	problems []*Error
	// reads are the names whose first value is that of a variable of the render.
	reads []*syntax.Name
	// cells has the variables of names, of namespaces that are assigned to, and of macros.
	cells map[syntax.Node]cell
	// set has the names that the template assigns to anywhere; it is filled when it is needed.
	set map[string]bool
	// scopes are those of macros, call blocks and loops.
	scopes map[syntax.Node]*symbols
}

func newNotes() *notes {
	return &notes{cells: map[syntax.Node]cell{}, scopes: map[syntax.Node]*symbols{}}
}

func (n *notes) begin(root *frame) {
	if n != nil {
		n.root = root.symbols
	}
}

// problem notes a mistake that a render may never meet; err may be nil.
func (n *notes) problem(err error) {
	if wrong, ok := errors.AsType[*Error](err); ok && n != nil {
		n.problems = append(n.problems, wrong)
	}
}

func (n *notes) read(name *syntax.Name, id identifier, f *frame) {
	if n == nil {
		return
	}
	n.variable(name, id, f)
	if f.load(id).kind == loadContext {
		n.reads = append(n.reads, name)
	}
}

// variable notes the variable that node, seen from f, refers to.
func (n *notes) variable(node syntax.Node, id identifier, f *frame) {
	if n != nil {
		n.cells[node] = cell{scope: f.symbols}.of(id)
	}
}

func (n *notes) scope(node syntax.Node, f *frame) {
	if n != nil {
		n.scopes[node] = f.symbols
	}
}
