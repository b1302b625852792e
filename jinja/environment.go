package jinja

import (
	"context"
	"maps"
	"math/rand/v2"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// Filter is a filter of the program that uses this package. It is called with the value to filter and the arguments of the
// filter.
type Filter func(b *py.Budget, value py.Value, args py.Args) (py.Value, error)

// Options are what a program adds to Jinja.
type Options struct {
	// Limits are those of each render, and of what is evaluated when a template is compiled.
	Limits py.Limits
	// Source is the maximum length of a template, in bytes.
	Source int
	// Filters are added to the builtin ones. Their results must depend only on their arguments.
	Filters map[string]Filter
	// Finalize returns the text that {{ … }} prints for a value; str(value) if it is nil.
	Finalize func(b *py.Budget, value py.Value) (string, error)
}

// Environment has the filters, tests and limits of templates. It is never changed, and safe for concurrent use.
type Environment struct {
	options Options
	filters map[string]filter
	tests   map[string]test
}

// New returns an environment with the builtin filters and tests and what options add.
func New(options Options) *Environment {
	env := &Environment{options: options, tests: builtinTests, filters: map[string]filter{}}
	maps.Copy(env.filters, builtinFilters)
	for name, added := range options.Filters {
		env.filters[name] = func(s *state, value py.Value, args py.Args) (py.Value, error) {
			return added(s.budget, value, args)
		}
	}
	return env
}

// Template is a compiled template. It is never changed, and safe for concurrent use.
type Template struct {
	env    *Environment
	root   *unit
	body   exec
	blocks map[string]*block
	seed   uint64
}

// Seeded returns the same template with another seed: random and lipsum return the same in each render with the same seed and
// variables.
func (t *Template) Seeded(seed uint64) *Template {
	seeded := *t
	seeded.seed = seed
	return &seeded
}

// Compiler compiles templates that belong together: their constant expressions are evaluated within one budget. It is not
// safe for concurrent use.
type Compiler struct {
	env     *Environment
	folding *py.Budget
}

// Compiler returns a compiler.
func (env *Environment) Compiler() *Compiler {
	return &Compiler{env, py.Untimed(foldingLimits(env.options.Limits))}
}

// Compile compiles one template. An error is of type *Error.
func (env *Environment) Compile(source string) (*Template, error) {
	return env.Compiler().Compile(source)
}

// Constants returns how many bytes the constants of all the templates take, approximately.
func (c *Compiler) Constants() int { return int(c.folding.Used()) }

// Compile compiles one template. An error is of type *Error.
func (c *Compiler) Compile(source string) (*Template, error) {
	tree, err := c.env.parse(source)
	if err != nil {
		return nil, err
	}
	return c.env.compile(tree, c.folding, nil)
}

func (env *Environment) parse(source string) (*syntax.Template, error) {
	if limit := env.options.Source; limit > 0 && len(source) > limit {
		return nil, syntaxError(syntax.Pos{Line: 1, Column: 1}, "the template is longer than %d bytes", limit)
	}
	tree, err := syntax.Parse(source)
	return tree, at(syntax.Pos{Line: 1, Column: 1}, err)
}

// Result is the result of a render.
type Result struct {
	Text string

	context *scope
}

// Variable returns what the template has assigned to name outside of loops, macros and other inner scopes. Names with
// a leading underscore are private to the template.
func (r *Result) Variable(name string) (py.Value, bool) {
	value, ok := r.context.set[name]
	return value, ok && name != "" && name[0] != '_'
}

// Render evaluates the template. Variables must be a copy that only this render uses: a template may change a list. An
// error is of type *Error.
func (t *Template) Render(ctx context.Context, variables map[string]py.Value) (*Result, error) {
	s := newState(t.env, t.seed, py.NewBudget(ctx, t.env.options.Limits))
	top := &scope{variables: variables, set: map[string]py.Value{}, blocks: t.blocks}
	out := &output{}
	r := &run{state: s, scope: top, frame: t.root.activate(nil), out: out}
	if err := t.body(r); err != nil {
		return nil, at(syntax.Pos{Line: 1, Column: 1}, err)
	}
	text, err := out.done()
	if err != nil {
		return nil, err
	}
	return &Result{Text: text, context: top}, nil
}

func newState(env *Environment, seed uint64, budget *py.Budget) *state {
	return &state{budget: budget, env: env, random: rand.New(rand.NewPCG(seed, seed))}
}
