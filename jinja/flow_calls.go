package jinja

import (
	"golang.org/x/text/unicode/norm"

	"github.com/albertofaria/pav/jinja/syntax"
)

// callee is a macro, the body of a call block, or a block in self.
type callee struct {
	node      syntax.Node
	signature syntax.Signature
	body      []syntax.Stmt
	scope     *symbols

	// active: it is being called; recursive: it has called itself; again: with new arguments. Result is what it has printed.
	active, recursive, again bool
	result                   *tracked
}

func (t *tracer) callee(node syntax.Node, signature syntax.Signature, body []syntax.Stmt) *callee {
	if t.callees[node] == nil {
		t.callees[node] = &callee{node: node, signature: signature, body: body, scope: t.scopes[node]}
	}
	return t.callees[node]
}

// blockNamed returns the block self.name.
func (t *tracer) blockNamed(name string) *tracked {
	block := t.blocks[name]
	if block == nil {
		return nil
	}
	return &tracked{callees: []*callee{t.callee(block, syntax.Signature{}, block.Body)}}
}

// trackedArgs are the arguments of a call. Rest has the possible values of the arguments in * and **.
type trackedArgs struct {
	positional []*tracked
	named      map[string]*tracked
	rest       *tracked
}

func (t *tracer) args(args syntax.Args) trackedArgs {
	given := trackedArgs{positional: t.evalAll(args.Pos), named: map[string]*tracked{}}
	for _, arg := range args.Named {
		given.named[arg.Name] = t.eval(arg.Value)
	}
	for _, extra := range []syntax.Expr{args.Star, args.StarStar} {
		if extra != nil {
			given.rest = t.join(given.rest, t.entries(t.eval(extra)))
		}
	}
	return given
}

// get returns the argument of that holder or name.
func (t *tracer) get(a trackedArgs, i int, name string) *tracked {
	if i < len(a.positional) {
		return a.positional[i]
	}
	return t.join(a.named[name], a.rest)
}

// all returns the possible values of all arguments.
func (t *tracer) all(a trackedArgs) *tracked {
	all := a.rest
	for _, v := range a.positional {
		all = t.join(all, v)
	}
	for _, v := range a.named {
		all = t.join(all, v)
	}
	return all
}

// call returns the possible results of a call. Caller is the body of a call block, or nil.
func (t *tracer) call(e *syntax.Call, caller *callee) *tracked {
	if method, ok := e.Function.(*syntax.Attribute); ok {
		object := t.eval(method.Object)
		return t.method(e, object, method, t.withCaller(t.args(e.Args), caller))
	}
	function := t.eval(e.Function)
	args := t.withCaller(t.args(e.Args), caller)
	if function == nil {
		return t.altered(t.all(args))
	}
	switch function.special.kind {
	case specialFunction:
		return t.object(function.special.name+"()", beginning(e))
	case specialGlobal:
		return t.global(e, function.special.name, args)
	case specialLoop:
		// Each level prints the same as this one, for parts of its arguments.
		return t.altered(t.all(args))
	default:
	}
	if len(function.callees) > 0 {
		return t.callAll(function.callees, args)
	}
	return t.altered(function, t.all(args))
}

func (t *tracer) withCaller(args trackedArgs, caller *callee) trackedArgs {
	if caller != nil {
		args.named["caller"] = &tracked{callees: []*callee{caller}}
	}
	return args
}

// global returns the result of a builtin function.
func (t *tracer) global(e *syntax.Call, name string, args trackedArgs) *tracked {
	switch name {
	case "namespace":
		for field, v := range args.named {
			t.set(holder{e, field}, v)
		}
		rest := args.rest
		for _, v := range args.positional {
			rest = t.join(rest, t.entries(v))
		}
		t.set(holder{e, anyName}, rest)
		return &tracked{spaces: []*syntax.Call{e}}
	case "dict":
		rest := args.rest
		for _, v := range args.positional {
			rest = t.join(rest, t.entries(v))
		}
		return t.ofFields(args.named, rest)
	case "range", lipsum:
		return nil
	default: // cycler and joiner: calling what they return yields what they were given.
		return ofTexts(t.together(t.all(args)))
	}
}

func (t *tracer) callAll(callees []*callee, args trackedArgs) *tracked {
	var result *tracked
	for _, c := range callees {
		result = t.join(result, t.invoke(c, args))
	}
	return result
}

// invoke returns the output of a callee.
func (t *tracer) invoke(c *callee, args trackedArgs) *tracked {
	if c.active {
		c.recursive = true
		c.again = t.bind(c, args, true) || c.again
		return c.result
	}
	c.active, c.again, c.result = true, true, nil
	t.bind(c, args, false)
	for c.again && t.step(1) {
		c.again, c.recursive = false, false
		before := c.result
		c.result = t.join(before, t.capture(func() { t.body(c.body) }))
		c.again = c.again || c.recursive && c.result != before
	}
	c.active = false
	return c.result
}

// bind sets the parameters of a callee to the arguments. If it adds them to the values of parameters, it reports whether
// these grow.
func (t *tracer) bind(c *callee, args trackedArgs, add bool) (grown bool) {
	give := func(name string, v *tracked) {
		p := holder{c.scope, norm.NFKC.String(name)}
		if add {
			before := t.values[p]
			v = t.join(before, v)
			grown = grown || v != before
		}
		t.set(p, v)
	}
	params, defaults := c.signature.Params, c.signature.Defaults
	taken := map[string]bool{}
	for i, param := range params {
		taken[param.Name] = true
		_, named := args.named[param.Name]
		v := t.get(args, i, param.Name)
		if first := len(params) - len(defaults); i >= len(args.positional) && !named && i >= first {
			v = t.join(v, t.eval(defaults[i-first]))
		}
		give(param.Name, v)
	}
	rest := args
	rest.named = map[string]*tracked{}
	for name, v := range args.named {
		if !taken[name] {
			rest.named[name] = v
		}
	}
	rest.positional = args.positional[min(len(params), len(args.positional)):]
	if !taken["caller"] {
		give("caller", rest.named["caller"])
		delete(rest.named, "caller")
	}
	give("varargs", t.ofItems(rest.positional))
	give("kwargs", t.ofFields(rest.named, rest.rest))
	return grown
}
