package jinja

import (
	"maps"

	"golang.org/x/text/unicode/norm"

	"github.com/albertofaria/pav/jinja/syntax"
)

// identifier is a variable of a scope. Jinja's scopes follow the statements, but which scope a name belongs to
// depends on everything that a scope reads and assigns, so a scope is analyzed before it is compiled.
// These rules are those of jinja2/idtracking.py.
type identifier struct {
	level int
	name  string
}

// load is how a scope gets the first value of one of its variables.
type load struct {
	kind loadKind
	// of is the variable of an outer scope, for loadAlias; name is the name of the variable of the context, for loadContext.
	of   identifier
	name string
}

type loadKind int

const (
	// loadParameter: the statement itself sets it.
	loadParameter loadKind = iota
	// loadContext: it is looked up among the variables of the render.
	loadContext
	loadAlias
	// loadMissing: it has no value until it is assigned.
	loadMissing
)

// analysis counts the names that were copied to analyze the scopes of a template. Each branch begins with a copy of the
// names before it, which are few in normal templates.
type analysis struct{ copied int }

// maxCopied is how many names may be copied.
const maxCopied = 100_000

func (a *analysis) exceeded() bool { return a.copied > maxCopied }

// symbols are the names of one scope.
type symbols struct {
	*analysis
	level  int
	parent *symbols
	refs   map[string]identifier
	loads  map[identifier]load
	stores map[string]bool
}

// symbols returns the outermost scope of a template or block.
func (a *analysis) symbols() *symbols { return &symbols{analysis: a} }

func newSymbols(parent *symbols) *symbols {
	return &symbols{analysis: parent.analysis, parent: parent, level: parent.level + 1}
}

func (s *symbols) copy() *symbols {
	c := &symbols{analysis: s.analysis, level: s.level, parent: s.parent}
	if s.copied += len(s.refs) + len(s.loads) + len(s.stores); !s.exceeded() {
		c.refs, c.loads, c.stores = maps.Clone(s.refs), maps.Clone(s.loads), maps.Clone(s.stores)
	}
	return c
}

func (s *symbols) define(name string, l load) identifier {
	// Names that are equal after Unicode normalization are one variable, as in Python; a context has them unchanged.
	id := identifier{s.level, norm.NFKC.String(name)}
	if s.refs == nil {
		s.refs, s.loads = map[string]identifier{}, map[identifier]load{}
	}
	s.refs[name] = id
	s.loads[id] = l
	return id
}

// find returns the variable that name stands for in the scope, if any statement seen so far uses it.
func (s *symbols) find(name string) (identifier, bool) {
	for scope := s; scope != nil; scope = scope.parent {
		if id, ok := scope.refs[name]; ok {
			return id, true
		}
	}
	return identifier{}, false
}

func (s *symbols) findOutside(name string) (identifier, bool) {
	if s.parent == nil {
		return identifier{}, false
	}
	return s.parent.find(name)
}

func (s *symbols) assigns(name string) {
	if s.stores == nil {
		s.stores = map[string]bool{}
	}
	s.stores[name] = true
}

// store notes that the scope assigns to name.
func (s *symbols) store(name string) {
	s.assigns(name)
	if _, ok := s.refs[name]; ok {
		return
	}
	if outer, ok := s.findOutside(name); ok {
		s.define(name, load{kind: loadAlias, of: outer})
	} else {
		s.define(name, load{kind: loadMissing})
	}
}

// parameter notes that the scope begins with a value for name.
func (s *symbols) parameter(name string) identifier {
	s.assigns(name)
	return s.define(name, load{kind: loadParameter})
}

// read notes that the scope reads name.
func (s *symbols) read(name string) {
	if _, ok := s.find(name); !ok {
		s.define(name, load{kind: loadContext, name: name})
	}
}

// merge adds what the branches of an if noted, each of which began as a copy of s. A name that only some of all count
// branches assign keeps its earlier value in the others.
func (s *symbols) merge(branches []*symbols, count int) {
	var stored map[string]int
	for _, branch := range branches {
		for name := range branch.stores {
			if !s.stores[name] {
				stored = union(stored, map[string]int{name: stored[name] + 1})
			}
		}
	}
	for _, branch := range branches {
		s.refs, s.loads, s.stores = union(s.refs, branch.refs), union(s.loads, branch.loads), union(s.stores, branch.stores)
	}
	for name, times := range stored {
		if times == count {
			continue
		}
		id, _ := s.find(name)
		if outer, ok := s.findOutside(name); ok {
			s.loads[id] = load{kind: loadAlias, of: outer}
		} else {
			s.loads[id] = load{kind: loadContext, name: name}
		}
	}
}

// union adds the entries of more to all, which may be nil.
func union[K comparable, V any](all, more map[K]V) map[K]V {
	if len(more) == 0 {
		return all
	}
	if all == nil {
		all = make(map[K]V, len(more))
	}
	maps.Copy(all, more)
	return all
}

// visible returns the variables that the scope and those around it assign, by name: what a scoped block sees.
func (s *symbols) visible() map[string]identifier {
	names := map[string]identifier{}
	for scope := s; scope != nil; scope = scope.parent {
		for name := range scope.stores {
			if _, ok := names[name]; !ok && !s.exceeded() {
				names[name], _ = s.find(name)
				s.copied++
			}
		}
	}
	return names
}

// all notes what nodes use.
func (s *symbols) all(nodes []syntax.Node) {
	for _, node := range nodes {
		s.visit(node)
	}
}

// visit notes what node uses in this scope, and not what belongs to scopes inside it.
func (s *symbols) visit(node syntax.Node) {
	switch n := node.(type) {
	case *syntax.Name:
		s.name(n)
	case *syntax.NamespaceRef:
		s.read(n.Name)
	case *syntax.If:
		s.branches(n.Branches, n.Else)
	case *syntax.Macro:
		s.store(n.Name)
	case *syntax.Other:
		s.all(n.Children())
		for _, name := range n.Binds {
			s.store(name)
		}
	case *syntax.Assign:
		s.visit(n.Value)
		s.visit(n.Target)
	case *syntax.For:
		s.visit(n.Iter)
	case *syntax.CallBlock:
		s.visit(n.Call)
	case *syntax.FilterBlock:
		s.visit(n.Filter)
	case *syntax.With:
		for _, value := range n.Values {
			s.visit(value)
		}
	case *syntax.AssignBlock:
		s.visit(n.Target)
	case *syntax.Autoescape, *syntax.Block:
	default:
		s.all(n.Children())
	}
}

func (s *symbols) name(n *syntax.Name) {
	switch n.Use {
	case syntax.Param:
		s.parameter(n.Name)
	case syntax.Store:
		s.store(n.Name)
	case syntax.Load:
		s.read(n.Name)
	}
}

// branches analyzes an if. Each test but the first belongs to the branches, as they are nested.
func (s *symbols) branches(branches []syntax.Branch, otherwise []syntax.Stmt) {
	s.visit(branches[0].Test)
	body := s.copy()
	body.stmts(branches[0].Body)
	all := []*symbols{body}
	if len(branches) > 1 {
		elif := s.copy()
		for _, branch := range branches[1:] {
			elif.branches([]syntax.Branch{branch}, nil)
		}
		all = append(all, elif)
	}
	if len(otherwise) > 0 {
		last := s.copy()
		last.stmts(otherwise)
		all = append(all, last)
	}
	// There are always three: a missing one is a branch that assigns nothing.
	const count = 3
	s.merge(all, count)
}

func (s *symbols) stmts(body []syntax.Stmt) {
	for _, statement := range body {
		s.visit(statement)
	}
}

// params notes the names in target as parameters.
func (s *symbols) params(target syntax.Node) {
	if name, ok := target.(*syntax.Name); ok {
		s.parameter(name.Name)
		return
	}
	for _, child := range target.Children() {
		s.params(child)
	}
}

// undeclared returns which of names body reads before it assigns them, in any scope; but not in blocks.
func undeclared(body []syntax.Stmt, names ...string) map[string]bool {
	u := undeclaredNames{wanted: map[string]bool{}, found: map[string]bool{}}
	for _, name := range names {
		u.wanted[name] = true
	}
	for _, statement := range body {
		u.visit(statement)
	}
	return u.found
}

type undeclaredNames struct{ wanted, found map[string]bool }

func (u *undeclaredNames) visit(node syntax.Node) {
	switch n := node.(type) {
	case *syntax.Block:
		return
	case *syntax.Name:
		if n.Use == syntax.Load && u.wanted[n.Name] {
			u.found[n.Name] = true
		} else {
			delete(u.wanted, n.Name)
		}
	}
	for _, child := range node.Children() {
		u.visit(child)
	}
}
