package jinja

import (
	"slices"

	"github.com/albertofaria/pav/jinja/py"
)

func doDefault(s *state, args []py.Value) (py.Value, error) {
	value, fallback, boolean := args[0], args[1], args[2]
	if isUndefined(value) {
		return fallback, nil
	}
	c := calculation{s: s}
	if c.isTrue(boolean) && !c.isTrue(value) {
		value = fallback
	}
	return c.result(value)
}

func doLength(s *state, args []py.Value) (py.Value, error) {
	n, err := py.Len(s.budget, args[0])
	return py.NewInt(int64(n)), err
}

func doList(s *state, args []py.Value) (py.Value, error) {
	items, err := py.Collect(s.budget, args[0])
	return &py.List{Items: items}, err
}

func doFirst(s *state, args []py.Value) (py.Value, error) {
	iterator, err := py.Iterate(s.budget, args[0])
	if err != nil {
		return nil, err
	}
	return s.nextOr(iterator, "No first item, sequence was empty.")
}

func doLast(s *state, args []py.Value) (py.Value, error) {
	backwards, err := reversed(s.budget, args[0])
	if err != nil {
		return nil, err
	}
	return s.nextOr(backwards, "No last item, sequence was empty.")
}

// nextOr returns the next item or, without one, undefined with hint.
func (s *state) nextOr(iterator py.Iterator, hint string) (py.Value, error) {
	item, ok, err := iterator.Next(s.budget)
	if !ok && err == nil {
		return &py.Undefined{Hint: hint}, nil
	}
	return item, err
}

func doRandom(s *state, args []py.Value) (py.Value, error) {
	n, err := py.Len(s.budget, args[0])
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return &py.Undefined{Hint: "No random item, sequence was empty."}, nil
	}
	return py.Item(s.budget, args[0], py.NewInt(int64(s.random.IntN(n))))
}

// doReverse returns a string for a string, an iterator for what Python's reversed accepts, and a list for other values.
func doReverse(s *state, args []py.Value) (py.Value, error) {
	if _, isString := py.TextOf(args[0]); isString {
		return py.Item(s.budget, args[0], &py.SliceKey{Step: py.NewInt(-1)})
	}
	backwards, err := reversed(s.budget, args[0])
	if err == nil {
		return backwards, nil
	}
	if !raised(err, "TypeError") {
		return nil, err
	}
	items, err := py.Collect(s.budget, args[0])
	if raised(err, "TypeError") {
		return nil, raisef("FilterArgumentError", "argument must be iterable")
	}
	slices.Reverse(items)
	return &py.List{Items: items}, err
}

// doItems is a generator, so a value that is not a mapping is an error at its first use.
func doItems(_ *state, args []py.Value) (py.Value, error) {
	return lazily(func(b *py.Budget) (nextItem, error) {
		switch v := args[0].(type) {
		case *py.Dict:
			pairs, err := py.Iterate(b, &py.DictView{Dict: v, Kind: "dict_items"})
			if err != nil {
				return nil, err
			}
			return pairs.Next, nil
		case *py.Undefined:
			return nothing, nil
		}
		return nil, raisef("TypeError", "Can only get item pairs from a mapping.")
	}), nil
}

// doJoin returns HTML if automatic escaping is on and any part is HTML, and text otherwise.
func doJoin(s *state, args []py.Value) (py.Value, error) {
	items, err := s.attributesOf(args[0], args[2])
	if err != nil {
		return nil, err
	}
	parts, err := py.Collect(s.budget, items)
	if err != nil {
		return nil, err
	}
	separator := args[1]
	if s.autoescape && (isMarkup(separator) || slices.ContainsFunc(parts, isMarkup)) {
		text, err := s.joined(parts, separator, escape)
		return py.Markup(text), err
	}
	text, err := s.joined(parts, separator, plainString)
	return py.Str(text), err
}

func (s *state) joined(
	parts []py.Value, separator py.Value, convert func(*py.Budget, py.Value) (py.Value, error),
) (string, error) {
	converted, err := convert(s.budget, separator)
	if err != nil {
		return "", err
	}
	between, _ := py.TextOf(converted)
	w := textWriter{budget: s.budget}
	for i, part := range parts {
		converted, err := convert(s.budget, part)
		if err != nil {
			return "", err
		}
		if i > 0 {
			if err := w.write(between); err != nil {
				return "", err
			}
		}
		text, _ := py.TextOf(converted)
		if err := w.write(text); err != nil {
			return "", err
		}
	}
	return w.String(), nil
}
