package jinja

import "github.com/albertofaria/pav/jinja/py"

// bound returns a filter or test that calls fn with the value and the arguments in the order of params,
// the first of which is the value.
func bound[Result any](
	function string, fn func(s *state, args []py.Value) (Result, error), params ...py.Param,
) func(s *state, value py.Value, args py.Args) (Result, error) {
	return func(s *state, value py.Value, args py.Args) (Result, error) {
		values, err := py.Bind(function, withValue(value, args), params...)
		if err != nil {
			var none Result
			return none, err
		}
		return fn(s, values)
	}
}

// withValue returns the value, followed by args.
func withValue(value py.Value, args py.Args) py.Args {
	positional := make([]py.Value, 0, len(args.Pos)+1)
	return py.Args{Pos: append(append(positional, value), args.Pos...), Named: args.Named}
}

// required is a parameter without a default.
func required(name string) py.Param { return py.Param{Name: name} }

// positional is a parameter of a function that Python implements in C: it cannot be named.
func positional(name string) py.Param { return py.Param{Name: name, PosOnly: true} }

// optional is a parameter with a default.
func optional(name string, value py.Value) py.Param { return py.Param{Name: name, Default: value} }

// isNone reports whether value is None.
func isNone(value py.Value) bool {
	_, none := value.(py.None)
	return none
}

// isUndefined reports whether value is undefined.
func isUndefined(value py.Value) bool {
	_, undefined := value.(*py.Undefined)
	return undefined
}

// isMarkup reports whether value is HTML already.
func isMarkup(value py.Value) bool {
	_, markup := value.(py.Markup)
	return markup
}
