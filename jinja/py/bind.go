package py

import "slices"

// Param is one parameter of a function.
type Param struct {
	Name string
	// Default is the value where there is no argument; nil makes the parameter required.
	Default Value
	// PosOnly is a parameter that cannot be given by name, KwOnly one that only can; those come last.
	PosOnly, KwOnly bool
}

// Bind returns the arguments of a call in the order of params, or Python's TypeError if the call does not match them.
func Bind(function string, args Args, params ...Param) ([]Value, error) {
	positional := len(params)
	for positional > 0 && params[positional-1].KwOnly {
		positional--
	}
	if len(args.Pos) > positional {
		return nil, typeError("%s() takes %d positional %s but %d %s given", function,
			positional, plural("argument", positional), len(args.Pos), wasOrWere(len(args.Pos)))
	}
	values := make([]Value, len(params))
	copy(values, args.Pos)
	for _, named := range args.Named {
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == named.Name && !p.PosOnly })
		if i < 0 {
			return nil, typeError("%s() got an unexpected keyword argument %s", function, named.Label())
		}
		if values[i] != nil {
			return nil, typeError("%s() got multiple values for argument %s", function, named.Label())
		}
		values[i] = named.Value
	}
	for i, param := range params {
		if values[i] == nil {
			values[i] = param.Default
		}
		if values[i] == nil {
			return nil, typeError("%s() missing 1 required positional argument: '%s'", function, param.Name)
		}
	}
	return values, nil
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func wasOrWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// required and optional are parameters of the many functions of Python whose arguments have no names.
func required(name string) Param { return Param{Name: name, PosOnly: true} }

func optional(name string, value Value) Param {
	return Param{Name: name, Default: value, PosOnly: true}
}

// byName is a parameter with a default that can be given by name.
func byName(name string, value Value) Param { return Param{Name: name, Default: value} }

// absent is the default of a parameter for which None is an ordinary value.
type absent struct{}

// TypeName implements Value.
func (absent) TypeName() string { return "absent" }
