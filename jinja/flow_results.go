package jinja

import (
	"cmp"
	"slices"

	"github.com/albertofaria/pav/jinja/syntax"
)

// readAt is a part of an object, by its id, that is read at a place; reached is one that has reached the output.
type readAt struct {
	syntax.Pos
	id string
}

type reached struct {
	readAt
	word bool
}

// flow notes that a part of an object reaches the output.
func (t *tracer) flow(pos syntax.Pos, part textPart) {
	if key := (reached{readAt{pos, part.id}, part.word}); !t.flows[key] {
		t.flows[key] = true
		t.found = append(t.found, Flow{Pos: pos, Root: part.root, Keys: part.keys, Word: part.word})
	}
}

// path notes that a part of an object is read.
func (t *tracer) path(o *origin, guarded bool) {
	if len(o.keys) == 0 {
		return
	}
	key := readAt{o.pos, o.id}
	if known := t.paths[key]; known != nil {
		known.Guarded = known.Guarded && guarded
		return
	}
	t.paths[key] = &Path{Pos: o.pos, Root: o.root, Keys: o.keys, Guarded: guarded}
}

// results returns what has been found, in the order of the source.
func (t *tracer) results() ([]Path, []Flow) {
	var paths []Path
	for _, path := range t.paths {
		path.Tested = t.testedOf(path)
		path.Guarded = path.Guarded || path.Tested == len(path.Keys)
		paths = append(paths, *path)
	}
	return inOrder(paths, t.found)
}

// testedOf returns how many keys the longest part of a path has that may be missing.
func (t *tracer) testedOf(path *Path) int {
	longest := 0
	o := &origin{root: path.Root, id: path.Root}
	for i, key := range path.Keys {
		if o = o.key(key); t.tested[o.id] || t.defaulted[o.id] && i < len(path.Keys)-1 {
			longest = i + 1
		}
	}
	return longest
}

func inOrder(paths []Path, flows []Flow) ([]Path, []Flow) {
	slices.SortStableFunc(paths, func(a, b Path) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, slices.Compare(a.Keys, b.Keys))
	})
	slices.SortStableFunc(flows, func(a, b Flow) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, slices.Compare(a.Keys, b.Keys))
	})
	return paths, flows
}

// beginning returns the position at which an expression begins.
func beginning(node syntax.Expr) syntax.Pos {
	for {
		inner := leftmost(node)
		if inner == nil {
			return node.Position()
		}
		node = inner
	}
}

// leftmost returns the expression that another one begins with, or nil if it begins with itself.
func leftmost(node syntax.Expr) syntax.Expr {
	switch e := node.(type) {
	case *syntax.Filter:
		return e.Input
	case *syntax.Attribute:
		return e.Object
	case *syntax.Item:
		return e.Object
	case *syntax.Call:
		return e.Function
	case *syntax.Test:
		return e.Input
	case *syntax.Binary:
		return e.Left
	case *syntax.Logic:
		return e.Left
	case *syntax.Concat:
		return e.Parts[0]
	case *syntax.Compare:
		return e.First
	case *syntax.Cond:
		return e.Then
	}
	return nil
}

// traceCoarsely reports everything that is read of objects as printed. It is for unusual templates, which take too long to
// trace.
func traceCoarsely(tree *syntax.Template, n *notes, q Question) ([]Path, []Flow) {
	var paths []Path
	var flows []Flow
	var visit func(node syntax.Node)
	visit = func(node syntax.Node) {
		if o := n.chain(node, q); o != nil {
			if len(o.keys) > 0 {
				paths = append(paths, Path{Pos: o.pos, Root: o.root, Keys: o.keys, Guarded: true, Tested: len(o.keys)})
			}
			flows = append(flows, Flow{Pos: o.pos, Root: o.root, Keys: o.keys})
			return
		}
		for _, child := range node.Children() {
			visit(child)
		}
	}
	for _, statement := range tree.Body {
		visit(statement)
	}
	return inOrder(paths, flows)
}

// chain returns the part of an object that a chain of attributes selects, or nil.
func (n *notes) chain(node syntax.Node, q Question) *origin {
	var keys []string
	for {
		switch e := node.(type) {
		case *syntax.Attribute:
			keys, node = append(keys, e.Name), e.Object
			continue
		case *syntax.Call:
			if name, ok := e.Function.(*syntax.Name); ok && q.Functions[name.Name] {
				return originOf(name.Name+"()", name.Pos, keys)
			}
		case *syntax.Name:
			if c, ok := n.cells[e]; ok && q.Objects[e.Name] && c.load().kind != loadParameter {
				return originOf(e.Name, e.Pos, keys)
			}
		}
		return nil
	}
}

func originOf(root string, pos syntax.Pos, keys []string) *origin {
	slices.Reverse(keys)
	return &origin{root: root, keys: keys, pos: pos}
}
