package jinja

import "github.com/albertofaria/pav/jinja/py"

// builtinGlobals has the variables of every template, except those that depend on the render.
var builtinGlobals = map[string]py.Value{
	"cycler":    hostType("jinja2.utils.Cycler", newCycler),
	"dict":      hostType("dict", newDict),
	"joiner":    hostType("jinja2.utils.Joiner", newJoiner),
	"namespace": hostType("jinja2.utils.Namespace", newNamespace),
	"range":     &py.Func{Name: "safe_range", Type: "function", Fn: safeRange},
}

func hostType(name string, create func(b *py.Budget, args py.Args) (py.Value, error)) *py.Func {
	return &py.Func{Name: name, Type: "type", Fn: create}
}

// lipsum is the name of the builtin variable that depends on the render.
const lipsum = "lipsum"

// global returns the builtin variable of that name.
func global(s *state, name string) (value py.Value, found bool) {
	if name == lipsum {
		return &py.Func{Name: "generate_lorem_ipsum", Type: "function", Fn: s.loremIpsum}, true
	}
	value, found = builtinGlobals[name]
	return value, found
}

// maxRange is how many integers a range may have.
const maxRange = 100000

// safeRange is Python's range with a limited length.
func safeRange(_ *py.Budget, args py.Args) (py.Value, error) {
	if len(args.Named) > 0 {
		return nil, raisef("TypeError", "safe_range() got an unexpected keyword argument %s", args.Named[0].Label())
	}
	bounds := make([]py.Int, len(args.Pos))
	for i, arg := range args.Pos {
		bound, err := py.Index(arg)
		if err != nil {
			return nil, err
		}
		bounds[i] = bound
	}
	zero, one := py.NewInt(0), py.NewInt(1)
	switch len(bounds) {
	case 1:
		return newRange(zero, bounds[0], one)
	case 2:
		return newRange(bounds[0], bounds[1], one)
	case 3:
		return newRange(bounds[0], bounds[1], bounds[2])
	case 0:
		return nil, raisef("TypeError", "range expected at least 1 argument, got 0")
	}
	return nil, raisef("TypeError", "range expected at most 3 arguments, got %d", len(bounds))
}

func newRange(start, stop, step py.Int) (py.Value, error) {
	if step.Sign() == 0 {
		return nil, raisef("ValueError", "range() arg 3 must not be zero")
	}
	small := [3]int64{}
	for i, bound := range []py.Int{start, stop, step} {
		n, fits := bound.Int64()
		if !fits {
			return nil, raisef("OverflowError", "range() is for integers of 64 bits")
		}
		small[i] = n
	}
	r := &py.Range{Start: small[0], Stop: small[1], Step: small[2]}
	if r.Len() > maxRange {
		return nil, raisef("OverflowError",
			"Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return r, nil
}
