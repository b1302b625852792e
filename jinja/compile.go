package jinja

import (
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// exec executes a compiled statement.
type exec func(r *run) error

// eval evaluates a compiled expression.
type eval func(r *run) (py.Value, error)

// compiler turns a tree into closures.
type compiler struct {
	env    *Environment
	blocks map[string]*block
	// notes has what the compiler notes for a survey, or is nil.
	notes *notes
	// analysis is how many steps the analysis of all scopes has taken so far.
	analysis analysis
	// folding is the state in which constant expressions are evaluated.
	folding *state
	// autoescape is whether output is escaped, as far as it is known before a render; volatile says that it is not.
	autoescape, volatile bool
	// late has mistakes that Jinja finds only in the code that it generates from the template, if it generates code for
	// that part.
	late []error
	// unhashable is that of a constant dictionary inside the expression being compiled, which is a mistake at once where the
	// dictionary is part of a computation. Depth is how deep in expressions the compiler is.
	unhashable error
	depth      int
	// extended says that there was an extends statement: nothing after it is printed.
	extended bool
}

// frame is a scope while it is compiled.
type frame struct {
	symbols *symbols
	unit    *unit
	outer   *frame
	// toplevel: assignments set variables of the template. rootlevel: the same, and not inside an if.
	toplevel, rootlevel bool
	// soft: inside an if, so that an unknown filter is an error only if it is executed.
	soft bool
	// captures: output is kept even after an extends statement, after which nothing is printed.
	captures bool
}

// inner returns the frame of a scope inside f, in the same activation.
func (f *frame) inner() *frame {
	return &frame{symbols: newSymbols(f.symbols), unit: f.unit, outer: f, captures: f.captures}
}

// innerUnit returns the frame of a scope inside f with activations of its own.
func (f *frame) innerUnit() *frame {
	inner := f.inner()
	inner.unit = newUnit(f.unit)
	return inner
}

// softened returns f as it is inside an if.
func (f *frame) softened() *frame {
	soft := *f
	soft.soft, soft.rootlevel = true, false
	return &soft
}

// reference returns where the variable is, seen from f.
func (f *frame) reference(id identifier) reference {
	owner := f
	for owner.symbols.level != id.level {
		owner = owner.outer
	}
	depth := 0
	for unit := f.unit; unit != owner.unit; unit = unit.outer {
		depth++
	}
	return reference{depth, owner.unit.slot(id)}
}

// load returns how the variable gets its first value.
func (f *frame) load(id identifier) load {
	for owner := f; owner != nil; owner = owner.outer {
		if l, ok := owner.symbols.loads[id]; ok {
			return l
		}
	}
	return load{kind: loadMissing}
}

// compile compiles a template. Unless n is nil, it notes in n what a survey needs.
func (env *Environment) compile(tree *syntax.Template, folding *py.Budget, n *notes) (*Template, error) {
	c := &compiler{env: env, blocks: map[string]*block{}, folding: newState(env, 0, folding), notes: n}
	template, err := c.template(tree)
	if c.analysis.exceeded() {
		// Scopes are incomplete then, so other errors may be wrong.
		return nil, &Error{Kind: py.Limit, Line: 1, Column: 1, Message: "the template sets too many variables in too many branches or blocks"}
	}
	return template, err
}

func (c *compiler) template(tree *syntax.Template) (*Template, error) {
	for _, statement := range tree.Blocks {
		if c.blocks[statement.Name] != nil {
			return nil, syntaxError(statement.Pos, "the block '%s' is defined twice", statement.Name)
		}
		c.blocks[statement.Name] = &block{statement: statement}
	}
	root := &frame{symbols: c.analysis.symbols(), unit: newUnit(nil), toplevel: true, rootlevel: true}
	enterSelf := c.selfParameter(root, tree.Body, "")
	root.symbols.stmts(tree.Body)
	c.notes.begin(root)
	body, err := c.scope(root, tree.Body)
	if err != nil {
		return nil, err
	}
	c.extended = false
	if err := c.compileBlocks(); err != nil {
		return nil, err
	}
	if len(c.late) > 0 {
		return nil, c.late[0]
	}
	return &Template{env: c.env, root: root.unit, body: sequence([]exec{enterSelf, body}), blocks: c.blocks}, nil
}

// foldingLimits are the limits of what is evaluated while a template is compiled: a fraction of those of a render.
// Expressions that take more are evaluated by the render.
func foldingLimits(limits py.Limits) py.Limits {
	const fraction = 20
	limits.Steps /= fraction
	limits.Memory /= fraction
	limits.Text = min(limits.Text, int(limits.Memory))
	return limits
}

// scope compiles body as the whole of f: first, the variables get their first values.
func (c *compiler) scope(f *frame, body []syntax.Stmt) (exec, error) {
	statements, err := c.body(body, f)
	if err != nil {
		return nil, err
	}
	return sequence([]exec{c.enter(f), statements}), nil
}

// enter returns a function that gives the variables of f their first values.
func (c *compiler) enter(f *frame) exec {
	type initial struct {
		at   int
		kind loadKind
		name string
		of   reference
	}
	var initials []initial
	for id, l := range f.symbols.loads {
		if l.kind == loadParameter {
			continue
		}
		first := initial{at: f.unit.slot(id), kind: l.kind, name: l.name}
		if l.kind == loadAlias {
			first.of = f.reference(l.of)
		}
		initials = append(initials, first)
	}
	if len(initials) == 0 {
		return nil
	}
	return func(r *run) error {
		for _, first := range initials {
			var value py.Value
			switch first.kind {
			case loadContext:
				value = r.lookUp(first.name)
			case loadAlias:
				value = *first.of.in(r.frame)
			default:
			}
			r.frame.slots[first.at] = value
		}
		return nil
	}
}

// leave returns a function that clears the variables of f: closures made inside still see the variables.
func (c *compiler) leave(f *frame) exec {
	slots := make([]int, 0, len(f.symbols.loads))
	for id := range f.symbols.loads {
		slots = append(slots, f.unit.slot(id))
	}
	if len(slots) == 0 {
		return nil
	}
	return func(r *run) error {
		for _, slot := range slots {
			r.frame.slots[slot] = nil
		}
		return nil
	}
}

// body compiles statements of f.
func (c *compiler) body(statements []syntax.Stmt, f *frame) (exec, error) {
	compiled := make([]exec, 0, len(statements))
	for _, statement := range statements {
		one, err := c.statement(statement, f)
		if err != nil {
			return nil, err
		}
		compiled = append(compiled, one)
	}
	return sequence(compiled), nil
}

// sequence returns a function that executes all statements that are not nil; each takes a step.
func sequence(statements []exec) exec {
	all := make([]exec, 0, len(statements))
	for _, statement := range statements {
		if statement != nil {
			all = append(all, statement)
		}
	}
	return func(r *run) error {
		for _, statement := range all {
			if err := r.budget.Step(1); err != nil {
				return err
			}
			if err := statement(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// perform executes a statement, which may be nil.
func (r *run) perform(statement exec) error {
	if statement == nil {
		return nil
	}
	return statement(r)
}

// evaluateAt returns a function that evaluates value, and adds the position to its errors.
func evaluateAt(pos syntax.Pos, value expr) eval {
	inner := value.eval
	return func(r *run) (py.Value, error) {
		result, err := inner(r)
		return result, at(pos, err)
	}
}

// statement compiles one statement.
func (c *compiler) statement(statement syntax.Stmt, f *frame) (exec, error) {
	switch s := statement.(type) {
	case *syntax.Output:
		return c.output(s, f)
	case *syntax.For:
		return c.forLoop(s, f)
	case *syntax.If:
		return c.ifElse(s, f)
	case *syntax.Assign:
		return c.assign(s, f)
	case *syntax.AssignBlock:
		return c.assignBlock(s, f)
	case *syntax.Macro:
		return c.macro(s, f)
	case *syntax.CallBlock:
		return c.callBlock(s, f)
	case *syntax.FilterBlock:
		return c.filterBlock(s, f)
	case *syntax.With:
		return c.with(s, f)
	case *syntax.Autoescape:
		return c.autoescapeBlock(s, f)
	case *syntax.Block:
		return c.block(s, f)
	case *syntax.Other:
		return c.other(s, f)
	}
	return nil, syntaxError(statement.Position(), "this statement is not known")
}
