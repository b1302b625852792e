package jinja

import (
	"golang.org/x/text/unicode/norm"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// tracer follows objects through a template. It executes each statement without data, with what is known about values. It
// executes both branches of a condition, and the body of a loop until it finds nothing new.
type tracer struct {
	*notes
	question Question
	absent   *absence
	blocks   map[string]*syntax.Block
	callees  map[syntax.Node]*callee

	// values has the values of variables and of the members of namespaces. Undo has their earlier values, change by change.
	values map[holder]*tracked
	undo   []change
	// collected is the input of the filter of a block.
	collected *tracked
	// out is the captured output; without it, output is added to the survey.
	out *[]textPart
	// escaping says that output may be escaped.
	escaping bool
	// printed counts print statements.
	printed int
	// left is how many steps it may still take.
	left int

	paths map[readAt]*Path
	// tested has the parts of objects that the template tests for existence, and defaulted those with a default value,
	// which may be read instead.
	tested, defaulted map[string]bool
	flows             map[reached]bool
	found             []Flow
}

// holder is a variable of a scope or a member of a namespace.
type holder struct {
	owner any
	name  string
}

// anyName represents the members of a namespace whose names are not known.
const anyName = ""

type change struct {
	holder holder
	value  *tracked
	set    bool
}

// maxTraced is how many steps a trace may take; templates that people write take a few hundred.
const maxTraced = 200_000

// trace finds which parts of objects are read, and which of them reach the output.
func trace(tree *syntax.Template, n *notes, absent *absence, q Question) ([]Path, []Flow) {
	if !n.readsAny(q) {
		return nil, nil
	}
	t := &tracer{
		notes: n, question: q, absent: absent, blocks: map[string]*syntax.Block{}, callees: map[syntax.Node]*callee{},
		values: map[holder]*tracked{}, left: maxTraced, paths: map[readAt]*Path{}, tested: map[string]bool{},
		defaulted: map[string]bool{}, flows: map[reached]bool{},
	}
	for _, block := range tree.Blocks {
		t.blocks[block.Name] = block
	}
	t.body(tree.Body)
	if t.exhausted() {
		return traceCoarsely(tree, n, q)
	}
	return t.results()
}

// readsAny reports whether the template reads the objects to trace.
func (n *notes) readsAny(q Question) bool {
	for _, read := range n.reads {
		if q.Objects[read.Name] || q.Functions[read.Name] {
			return true
		}
	}
	return false
}

// step takes n steps and reports whether that many were left.
func (t *tracer) step(n int) bool {
	t.left -= n
	return t.left >= 0
}

func (t *tracer) exhausted() bool { return t.left < 0 }

func (t *tracer) giveUp() { t.left = -1 }

// value returns what the variable may be; pos is where it is read.
func (t *tracer) value(c cell, pos syntax.Pos) *tracked {
	for t.step(1) {
		if v, ok := t.values[holder{c.scope, c.name}]; ok {
			return v
		}
		switch l := c.load(); l.kind {
		case loadAlias:
			c = c.of(l.of)
			continue
		case loadContext:
			return t.variable(l.name, pos)
		case loadParameter:
			if c.name == "self" {
				return &tracked{special: special{kind: specialSelf}}
			}
			return nil
		default:
			return nil
		}
	}
	return nil
}

// variable returns the possible values of a variable of the render. Variables that the template sets at the top hide them.
func (t *tracer) variable(name string, pos syntax.Pos) *tracked {
	if v, ok := t.values[holder{t.root, norm.NFKC.String(name)}]; ok {
		return v
	}
	switch {
	case t.question.Objects[name]:
		return t.object(name, pos)
	case t.question.Functions[name]:
		return &tracked{special: special{specialFunction, name}}
	case isGlobal(name) && !t.question.Names[name]:
		return &tracked{special: special{specialGlobal, name}}
	default:
		return nil
	}
}

func (t *tracer) object(root string, pos syntax.Pos) *tracked {
	return &tracked{objects: []*origin{{root: root, id: root, pos: pos, read: t.printed}}}
}

func (t *tracer) set(p holder, v *tracked) {
	before, there := t.values[p]
	t.undo = append(t.undo, change{p, before, there})
	t.values[p] = v
}

// alternatives executes several branches: afterwards, values are those after any of them. If the first branch does nothing,
// it reports whether the values have grown.
func (t *tracer) alternatives(alternatives ...func()) (grown bool) {
	after := make([]map[holder]*tracked, len(alternatives))
	var changed []holder
	seen := map[holder]bool{}
	for i, execute := range alternatives {
		begin := len(t.undo)
		execute()
		after[i] = map[holder]*tracked{}
		for _, c := range t.undo[begin:] {
			after[i][c.holder] = t.values[c.holder]
			if !seen[c.holder] {
				seen[c.holder] = true
				changed = append(changed, c.holder)
			}
		}
		t.rollBack(begin)
	}
	for _, p := range changed {
		before := t.before(p)
		var joined *tracked
		for i := range after {
			value, ok := after[i][p]
			if !ok {
				value = before
			}
			if i == 0 {
				joined = value
			}
			joined = t.join(joined, value)
		}
		grown = grown || joined != before
		if t.step(1) {
			t.set(p, joined)
		}
	}
	return grown
}

func (t *tracer) rollBack(begin int) {
	for i := len(t.undo) - 1; i >= begin; i-- {
		if c := t.undo[i]; c.set {
			t.values[c.holder] = c.value
		} else {
			delete(t.values, c.holder)
		}
	}
	t.undo = t.undo[:begin]
}

// before returns the possible values of a variable that has not been set.
func (t *tracer) before(p holder) *tracked {
	if scope, ok := p.owner.(*symbols); ok {
		return t.value(cell{scope, p.name}, syntax.Pos{})
	}
	return t.values[p]
}

// capture returns what execute prints.
func (t *tracer) capture(execute func()) *tracked {
	before := t.out
	var parts []textPart
	t.out = &parts
	execute()
	t.out = before
	return ofTexts(parts)
}

// print prints v. It has been read since began, or else it counts as read at pos.
func (t *tracer) print(pos syntax.Pos, began int, v *tracked) {
	parts := t.text(v)
	if t.escaping {
		parts = asWords(parts, false)
	}
	if t.out != nil {
		t.addTexts(t.out, parts)
		return
	}
	for _, part := range parts {
		if part.read >= began {
			t.flow(part.pos, part)
		} else {
			t.flow(pos, part)
		}
	}
}

func (t *tracer) body(statements []syntax.Stmt) {
	for _, statement := range statements {
		if !t.step(1) {
			return
		}
		t.statement(statement)
	}
}

func (t *tracer) statement(statement syntax.Stmt) {
	switch s := statement.(type) {
	case *syntax.Output:
		for _, item := range s.Items {
			t.printed++
			began := t.printed
			t.print(beginning(item), began, t.eval(item))
		}
	case *syntax.For:
		t.loop(s)
	case *syntax.If:
		t.branches(s.Branches, s.Else)
	case *syntax.Assign:
		t.assign(s.Target, t.eval(s.Value))
	case *syntax.AssignBlock:
		t.assign(s.Target, t.filtered(s.Filter, t.capture(func() { t.body(s.Body) })))
	case *syntax.Macro:
		t.set(holder{t.cells[s].scope, t.cells[s].name}, &tracked{callees: []*callee{t.callee(s, s.Signature, s.Body)}})
	case *syntax.CallBlock:
		t.printed++
		began := t.printed
		t.print(beginning(s.Call), began, t.call(s.Call, t.callee(s, s.Signature, s.Body)))
	case *syntax.FilterBlock:
		t.printed++
		began := t.printed
		t.print(s.Pos, began, t.filtered(s.Filter, t.capture(func() { t.body(s.Body) })))
	case *syntax.With:
		for i, target := range s.Targets {
			t.assign(target, t.eval(s.Values[i]))
		}
		t.body(s.Body)
	case *syntax.Autoescape:
		t.autoescape(s)
	case *syntax.Block:
		t.body(s.Body)
	case *syntax.Other:
		t.eval(s.Template)
	}
}

func (t *tracer) autoescape(s *syntax.Autoescape) {
	before := t.escaping
	t.eval(s.Value)
	value, ok := s.Value.(*syntax.Const)
	t.escaping = !ok || value.Value != py.Bool(false)
	t.body(s.Body)
	t.escaping = before
}

// filtered returns the result of the filter of a block for what was collected; the block may have no filter.
func (t *tracer) filtered(filter syntax.Expr, collected *tracked) *tracked {
	if filter == nil {
		return collected
	}
	before := t.collected
	t.collected = collected
	v := t.eval(filter)
	t.collected = before
	return v
}

func (t *tracer) branches(branches []syntax.Branch, otherwise []syntax.Stmt) {
	alternatives := make([]func(), 0, len(branches)+1)
	for _, branch := range branches {
		t.eval(branch.Test)
		alternatives = append(alternatives, func() { t.body(branch.Body) })
	}
	t.alternatives(append(alternatives, func() { t.body(otherwise) })...)
}

func (t *tracer) loop(s *syntax.For) {
	iterated := t.eval(s.Iter)
	if s.Test != nil {
		t.eval(s.Test)
	}
	item := t.elements(iterated)
	special := &tracked{special: special{kind: specialLoop}, near: item}
	once := func() {
		t.set(holder{t.scopes[s], "loop"}, special)
		t.assign(s.Target, item)
		t.body(s.Body)
	}
	const most = 20
	for range most {
		if !t.alternatives(func() {}, once) {
			t.body(s.Else)
			return
		}
	}
	t.giveUp()
}

// assign gives target a value.
func (t *tracer) assign(target syntax.Expr, v *tracked) {
	switch target := target.(type) {
	case *syntax.Name:
		c := t.cells[target]
		t.set(holder{c.scope, c.name}, v)
	case *syntax.Tuple:
		for i, item := range target.Items {
			if v != nil && len(v.items) == len(target.Items) {
				t.assign(item, t.join(v.items[i], t.elements(&tracked{element: v.element, objects: v.objects, texts: v.texts})))
			} else {
				t.assign(item, t.elements(v))
			}
		}
	case *syntax.NamespaceRef:
		t.assignMember(t.value(t.cells[target], target.Pos), target.Attribute, v)
	}
}

func (t *tracer) assignMember(namespace *tracked, name string, v *tracked) {
	if namespace == nil {
		return
	}
	for _, space := range namespace.spaces {
		member := holder{space, name}
		if len(namespace.spaces) > 1 {
			v = t.join(t.values[member], v)
		}
		t.set(member, v)
	}
}
