package jinja

import "github.com/albertofaria/pav/jinja/py"

// chooser returns, for each item of a sequence, its new value and whether it is kept.
type chooser func(item py.Value) (result py.Value, keep bool, err error)

// chosen returns a generator of the items that are kept. The chooser is made at the first use, if there are items.
func chosen(value py.Value, prepare func() (chooser, error)) *py.Generator {
	return lazily(func(b *py.Budget) (nextItem, error) {
		if some, err := py.Truth(b, value); !some || err != nil {
			return nothing, err
		}
		choose, err := prepare()
		if err != nil {
			return nil, err
		}
		items, err := py.Iterate(b, value)
		if err != nil {
			return nil, err
		}
		return func(b *py.Budget) (py.Value, bool, error) {
			for {
				item, ok, err := items.Next(b)
				if !ok || err != nil {
					return nil, false, err
				}
				result, keep, err := choose(item)
				if keep || err != nil {
					return result, keep, err
				}
			}
		}, nil
	})
}

// doMap applies a filter to each item, or returns an attribute of it.
func doMap(s *state, value py.Value, args py.Args) (py.Value, error) {
	if err := refuseNames("do_map", args, "context", "value"); err != nil {
		return nil, err
	}
	return chosen(value, func() (chooser, error) {
		get, err := s.mapping(args)
		return func(item py.Value) (py.Value, bool, error) {
			result, err := get(item)
			return result, err == nil, err
		}, err
	}), nil
}

func (s *state) mapping(args py.Args) (getter, error) {
	if len(args.Pos) == 0 {
		return s.attributeMapping(args.Named)
	}
	name, args := args.Pos[0], py.Args{Pos: args.Pos[1:], Named: args.Named}
	return func(item py.Value) (py.Value, error) {
		apply, err := s.filterOf(name)
		if err != nil {
			return nil, err
		}
		return apply(s, item, args)
	}, nil
}

func (s *state) attributeMapping(args []py.NamedArg) (getter, error) {
	var attribute, fallback py.Value = nil, py.None{}
	unexpected := false
	for _, arg := range args {
		switch arg.Name {
		case "attribute":
			attribute = arg.Value
		case "default":
			fallback = arg.Value
		default:
			unexpected = true
		}
	}
	switch {
	case attribute == nil:
		return nil, raisef("FilterArgumentError", "map requires a filter argument")
	case unexpected:
		return nil, raisef("FilterArgumentError", "Unexpected keyword argument")
	}
	return s.attributeGetter(attribute, fallback, false)
}

// selecting keeps the items for which the result of a test is as wanted or, without a test, which are true or false as
// wanted. With byAttribute, it tests an attribute of each item.
func selecting(function string, want, byAttribute bool) filter {
	return func(s *state, value py.Value, args py.Args) (py.Value, error) {
		if err := refuseNames(function, args, "context", "value"); err != nil {
			return nil, err
		}
		return chosen(value, func() (chooser, error) {
			get, question, err := s.subject(args, byAttribute)
			if err != nil {
				return nil, err
			}
			return func(item py.Value) (py.Value, bool, error) {
				subject, err := get(item)
				if err != nil {
					return nil, false, err
				}
				answer, err := s.ask(subject, question)
				return item, answer == want && err == nil, err
			}, nil
		}), nil
	}
}

// subject returns what is tested, and the arguments that are left for the test.
func (s *state) subject(args py.Args, byAttribute bool) (getter, py.Args, error) {
	if !byAttribute {
		return func(item py.Value) (py.Value, error) { return item, nil }, args, nil
	}
	if len(args.Pos) == 0 {
		return nil, args, raisef("FilterArgumentError", "Missing parameter for attribute name")
	}
	get, err := s.attributeGetter(args.Pos[0], py.None{}, false)
	return get, py.Args{Pos: args.Pos[1:], Named: args.Named}, err
}

// ask returns the result of the test that args begin with or, without one, whether subject is true.
func (s *state) ask(subject py.Value, args py.Args) (bool, error) {
	if len(args.Pos) == 0 {
		return py.Truth(s.budget, subject)
	}
	answer, err := s.testOf(args.Pos[0])
	if err != nil {
		return false, err
	}
	return answer(s, subject, py.Args{Pos: args.Pos[1:], Named: args.Named})
}

// filterOf returns the filter whose name is value.
func (s *state) filterOf(name py.Value) (filter, error) {
	if text, isString := py.TextOf(name); isString {
		return s.filterNamed(text)
	}
	return nil, notNamed("filter", name)
}

// testOf returns the test whose name is value.
func (s *state) testOf(name py.Value) (test, error) {
	if text, isString := py.TextOf(name); isString {
		return s.testNamed(text)
	}
	return nil, notNamed("test", name)
}

func notNamed(what string, name py.Value) error {
	if err := py.Hashable(name); err != nil {
		return err
	}
	return raisef("TemplateRuntimeError", "No %s named by a value of type %s.", what, name.TypeName())
}
