package jinja

import "github.com/albertofaria/pav/jinja/py"

// cycler returns its items in turn, again and again.
type cycler struct {
	items    []py.Value
	position int
}

func newCycler(_ *py.Budget, args py.Args) (py.Value, error) {
	if len(args.Named) > 0 {
		return nil, raisef("TypeError", "Cycler.__init__() got an unexpected keyword argument %s", args.Named[0].Label())
	}
	if len(args.Pos) == 0 {
		return nil, raisef("RuntimeError", "at least one item has to be provided")
	}
	return &cycler{items: args.Pos}, nil
}

// TypeName implements py.Value.
func (*cycler) TypeName() string { return "Cycler" }

// Attr implements py.Attributed.
func (c *cycler) Attr(_ *py.Budget, name string) (py.Value, bool, error) {
	switch name {
	case "items":
		return &py.Tuple{Items: c.items}, true, nil
	case "pos":
		return py.NewInt(int64(c.position)), true, nil
	case "current":
		return c.items[c.position], true, nil
	case "next", "__next__":
		return withoutArguments("next", c.next), true, nil
	case "reset":
		return withoutArguments("reset", c.reset), true, nil
	}
	return nil, false, nil
}

func (c *cycler) next() py.Value {
	current := c.items[c.position]
	c.position = (c.position + 1) % len(c.items)
	return current
}

func (c *cycler) reset() py.Value {
	c.position = 0
	return py.None{}
}

// withoutArguments returns a method without parameters.
func withoutArguments(name string, do func() py.Value) *py.Func {
	return method(name, func(_ *py.Budget, args py.Args) (py.Value, error) {
		if _, err := py.Bind(name, args); err != nil {
			return nil, err
		}
		return do(), nil
	})
}

// joiner returns an empty text at its first call, and a separator at all others.
type joiner struct {
	separator py.Value
	used      bool
}

func newJoiner(_ *py.Budget, args py.Args) (py.Value, error) {
	bound, err := py.Bind("Joiner.__init__", args, optional("sep", py.Str(", ")))
	if err != nil {
		return nil, err
	}
	return &joiner{separator: bound[0]}, nil
}

// TypeName implements py.Value.
func (*joiner) TypeName() string { return "Joiner" }

// Attr implements py.Attributed.
func (j *joiner) Attr(_ *py.Budget, name string) (py.Value, bool, error) {
	switch name {
	case "sep":
		return j.separator, true, nil
	case "used":
		return py.Bool(j.used), true, nil
	}
	return nil, false, nil
}

// Call implements py.Callable.
func (j *joiner) Call(_ *py.Budget, args py.Args) (py.Value, error) {
	if _, err := py.Bind("Joiner.__call__", args); err != nil {
		return nil, err
	}
	if !j.used {
		j.used = true
		return py.Str(""), nil
	}
	return j.separator, nil
}
