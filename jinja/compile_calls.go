package jinja

import (
	"cmp"
	"slices"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// argsCode are compiled arguments.
type argsCode struct {
	pos, named     []expr
	names          []string
	star, starStar *expr
}

func (c *compiler) args(from syntax.Args, f *frame) (*argsCode, error) {
	code := &argsCode{}
	var err error
	if code.pos, err = c.expressions(from.Pos, f); err != nil {
		return nil, err
	}
	for _, arg := range from.Named {
		value, err := c.expression(arg.Value, f)
		if err != nil {
			return nil, err
		}
		code.named = append(code.named, value)
		code.names = append(code.names, arg.Name)
	}
	for _, extra := range []struct {
		from syntax.Expr
		to   **expr
	}{{from.Star, &code.star}, {from.StarStar, &code.starStar}} {
		if extra.from == nil {
			continue
		}
		value, err := c.expression(extra.from, f)
		if err != nil {
			return nil, err
		}
		*extra.to = &value
	}
	return code, nil
}

// repeated notes a name that occurs twice.
func (c *compiler) repeated(pos syntax.Pos, args *argsCode) {
	for i, name := range args.names {
		if slices.Contains(args.names[:i], name) {
			c.late = append(c.late, &Error{Kind: py.Other, Line: pos.Line, Column: pos.Column, Message: "the argument '" + name + "' stands there twice"})
		}
	}
}

// all returns every expression of the arguments.
func (a *argsCode) all() []expr {
	parts := append(slices.Clone(a.pos), a.named...)
	for _, extra := range []*expr{a.star, a.starStar} {
		if extra != nil {
			parts = append(parts, *extra)
		}
	}
	return parts
}

// evaluate returns the arguments of one call. Value evaluates one of the expressions.
func (a *argsCode) evaluate(s *state, value func(e expr) (py.Value, error)) (py.Args, error) {
	var args py.Args
	if err := s.budget.Alloc(valueSize*len(a.pos) + 2*valueSize*len(a.named)); err != nil {
		return args, err
	}
	if len(a.pos) > 0 {
		args.Pos = make([]py.Value, len(a.pos))
	}
	for i, part := range a.pos {
		var err error
		if args.Pos[i], err = value(part); err != nil {
			return args, err
		}
	}
	if a.star != nil {
		list, err := value(*a.star)
		if err != nil {
			return args, err
		}
		more, err := py.Collect(s.budget, list)
		if err != nil {
			return args, err
		}
		args.Pos = append(args.Pos, more...)
	}
	for i, part := range a.named {
		named, err := value(part)
		if err != nil {
			return args, err
		}
		args.Named = append(args.Named, py.NamedArg{Name: a.names[i], Value: named})
	}
	if a.starStar == nil {
		return args, nil
	}
	mapping, err := value(*a.starStar)
	if err != nil {
		return args, err
	}
	return withMapping(s, args, mapping)
}

// withMapping adds the entries of a **mapping.
func withMapping(s *state, args py.Args, mapping py.Value) (py.Args, error) {
	dict, ok := mapping.(*py.Dict)
	if undefined, is := mapping.(*py.Undefined); is {
		return args, undefined.Err()
	}
	if !ok {
		return args, raisef("TypeError", "the argument after ** must be a mapping, not %s", mapping.TypeName())
	}
	if err := s.budget.Alloc(4 * valueSize * dict.Len()); err != nil {
		return args, err
	}
	// The keys of a mapping are different: only names that are written in the template can occur twice.
	written := slices.Clip(args.Named)
	for i := range dict.Len() {
		key, value := dict.Entry(i)
		name, ok := py.TextOf(key)
		if !ok {
			return args, raisef("TypeError", "keywords must be strings")
		}
		if slices.ContainsFunc(written, func(arg py.NamedArg) bool { return arg.Name == name }) {
			return args, raisef("TypeError", "got multiple values for a keyword argument")
		}
		args.Named = append(args.Named, py.NamedArg{Name: name, Value: value, Computed: true})
	}
	return args, nil
}

// callExpression compiles a call. Caller is the body of a call block, which is passed to the callee, or nil.
func (c *compiler) callExpression(e *syntax.Call, f *frame, caller *macroCode) (eval, error) {
	function, err := c.expression(e.Function, f)
	if err != nil {
		return nil, err
	}
	args, err := c.args(e.Args, f)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		args.names = append(args.names, "caller")
		args.named = append(args.named, expr{eval: func(r *run) (py.Value, error) { return caller.bind(r), nil }})
	}
	c.repeated(e.Pos, args)
	return func(r *run) (py.Value, error) {
		value, err := function.eval(r)
		if err != nil {
			return nil, err
		}
		given, err := args.evaluate(r.state, func(e expr) (py.Value, error) { return e.eval(r) })
		if err != nil {
			return nil, at(e.Pos, err)
		}
		result, err := r.call(value, given)
		return result, at(blamed(e.Pos, []syntax.Expr{e.Function}, []py.Value{value}), err)
	}, nil
}

func (c *compiler) filter(e *syntax.Filter, f *frame) (expr, error) {
	apply, known := c.env.filters[e.Name]
	if !known {
		if err := c.unknown(e.Pos, f, "filter", e.Name, otherwise(e.Name, c.env.filters, c.env.tests, "test")); err != nil {
			return expr{}, err
		}
		apply = func(s *state, _ py.Value, args py.Args) (py.Value, error) {
			_, err := s.filterNamed(e.Name)
			return nil, cmp.Or(unnamed(args), err)
		}
	}
	input := expr{eval: func(r *run) (py.Value, error) { return r.collected, nil }}
	if e.Input != nil {
		var err error
		if input, err = c.expression(e.Input, f); err != nil {
			return expr{}, err
		}
	}
	return c.applied(e.Pos, input, e.Args, f, known && !c.volatile && !needsContext[e.Name], apply)
}

func (c *compiler) test(e *syntax.Test, f *frame) (expr, error) {
	holds, known := c.env.tests[e.Name]
	if !known {
		if err := c.unknown(e.Pos, f, "test", e.Name, otherwise(e.Name, c.env.tests, c.env.filters, "filter")); err != nil {
			return expr{}, err
		}
		holds = func(s *state, _ py.Value, args py.Args) (bool, error) {
			_, err := s.testNamed(e.Name)
			return false, cmp.Or(unnamed(args), err)
		}
	}
	input, err := c.expression(e.Input, f)
	if err != nil {
		return expr{}, err
	}
	return c.applied(e.Pos, input, e.Args, f, known && !c.volatile, func(s *state, value py.Value, args py.Args) (py.Value, error) {
		result, err := holds(s, value, args)
		return py.Bool(result), err
	})
}

// unnamed returns the error for named arguments: Jinja replaces an unknown filter or test by a function that accepts none.
func unnamed(args py.Args) error {
	if len(args.Named) == 0 {
		return nil
	}
	return raisef("TypeError", "got an unexpected keyword argument %s", args.Named[0].Label())
}

// needsContext has the filters that Jinja never evaluates before a render.
var needsContext = map[string]bool{"map": true, "select": true, "reject": true, "selectattr": true, "rejectattr": true, "random": true}

// unknown reports a filter or test that does not exist: immediately or, for a survey or where Jinja would find it only in a
// render, as a problem.
func (c *compiler) unknown(pos syntax.Pos, f *frame, what, name, similar string) error {
	wrong := &Error{Kind: py.Syntax, Line: pos.Line, Column: pos.Column, Message: "there is no " + what + " '" + name + "'" + similar}
	if !f.soft && c.notes == nil {
		return wrong
	}
	c.notes.problem(wrong)
	return nil
}

// applied compiles the application of a filter or test to input.
func (c *compiler) applied(pos syntax.Pos, input expr, from syntax.Args, f *frame, foldable bool, apply filter) (expr, error) {
	args, err := c.args(from, f)
	if err != nil {
		return expr{}, err
	}
	once := func(s *state, value func(e expr) (py.Value, error)) (py.Value, error) {
		in, err := value(input)
		if err != nil {
			return nil, err
		}
		given, err := args.evaluate(s, value)
		if err != nil {
			return nil, at(pos, err)
		}
		if err := s.budget.Step(1); err != nil {
			return nil, at(pos, err)
		}
		result, err := apply(s, in, given)
		return result, at(pos, err)
	}
	evaluate := func(r *run) (py.Value, error) {
		return once(r.state, func(e expr) (py.Value, error) { return e.eval(r) })
	}
	folded := expr{eval: evaluate}
	if foldable {
		folded = c.fold(append(args.all(), input), func(s *state) (py.Value, error) {
			return once(s, func(e expr) (py.Value, error) { return e.constant, nil })
		}, evaluate)
	}
	c.repeated(pos, args)
	return folded, nil
}
