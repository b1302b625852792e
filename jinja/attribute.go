package jinja

import (
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

// getter returns the part of an item that a filter compares or groups by.
type getter func(item py.Value) (py.Value, error)

// attributeGetter looks up an attribute. Its name may be a path with dots, or None for the item itself. If a part is
// undefined, the result is fallback, unless that is None. Strings are converted to lower case if requested.
func (s *state) attributeGetter(attribute, fallback py.Value, fold bool) (getter, error) {
	path, err := s.attributePath(attribute)
	if err != nil {
		return nil, err
	}
	return func(item py.Value) (py.Value, error) {
		for _, part := range path {
			if err := s.budget.Alloc(4 * valueSize); err != nil {
				return nil, err
			}
			next, err := s.item(item, part)
			if err != nil {
				return nil, err
			}
			if isUndefined(next) && !isNone(fallback) {
				next = fallback
			}
			item = next
		}
		if fold {
			return s.ignoreCase(item)
		}
		return item, nil
	}, nil
}

// attributesGetter looks up several attributes, separated by commas, as a list.
func (s *state) attributesGetter(attribute py.Value, fold bool) (getter, error) {
	names := []py.Value{attribute}
	if text, isString := py.TextOf(attribute); isString {
		names = nil
		for name := range strings.SplitSeq(text, ",") {
			names = append(names, py.Str(name))
		}
	}
	getters := make([]getter, len(names))
	for i, name := range names {
		var err error
		if getters[i], err = s.attributeGetter(name, py.None{}, fold); err != nil {
			return nil, err
		}
	}
	return func(item py.Value) (py.Value, error) {
		if err := s.budget.Alloc(valueSize * len(getters)); err != nil {
			return nil, err
		}
		attributes := make([]py.Value, len(getters))
		for i, get := range getters {
			var err error
			if attributes[i], err = get(item); err != nil {
				return nil, err
			}
		}
		return &py.List{Items: attributes}, nil
	}, nil
}

// attributePath returns the parts of the name of an attribute; parts that consist of digits are integers.
func (s *state) attributePath(attribute py.Value) ([]py.Value, error) {
	if isNone(attribute) {
		return nil, nil
	}
	text, isString := py.TextOf(attribute)
	if !isString {
		return []py.Value{attribute}, nil
	}
	var path []py.Value
	for part := range strings.SplitSeq(text, ".") {
		key, err := s.pathPart(part)
		if err != nil {
			return nil, err
		}
		path = append(path, key)
	}
	return path, s.budget.Alloc(valueSize * len(path))
}

func (s *state) pathPart(part string) (py.Value, error) {
	digits, err := s.method(py.Str(part), "isdigit")
	if err != nil {
		return nil, err
	}
	if digits == py.Bool(true) {
		return py.ParseInt(s.budget, part, 10)
	}
	return py.Str(part), nil
}

// ignoreCase converts strings to lower case, and returns other values unchanged.
func (s *state) ignoreCase(value py.Value) (py.Value, error) {
	if _, isString := py.TextOf(value); isString {
		return s.method(value, "lower")
	}
	return value, nil
}

// attributesOf iterates over an attribute of each item or, without an attribute, over the items.
func (s *state) attributesOf(value, attribute py.Value) (*py.Generator, error) {
	get, err := s.attributeGetter(attribute, py.None{}, false)
	if err != nil {
		return nil, err
	}
	items, err := py.Iterate(s.budget, value)
	if err != nil {
		return nil, err
	}
	return &py.Generator{Type: "map", Fn: func(b *py.Budget) (py.Value, bool, error) {
		item, ok, err := items.Next(b)
		if !ok || err != nil {
			return nil, false, err
		}
		attribute, err := get(item)
		return attribute, err == nil, err
	}}, nil
}

// doAttr returns an attribute, never an item.
func doAttr(s *state, args []py.Value) (py.Value, error) {
	object := args[0]
	name, isString := py.TextOf(args[1])
	if !isString {
		return nil, raisef("TypeError", "attribute name must be string, not '%s'", args[1].TypeName())
	}
	_, found, _, err := py.Attr(s.budget, object, name)
	if err != nil {
		return nil, err
	}
	if !found {
		return &py.Undefined{Name: name, Object: object, Computed: true}, nil
	}
	return s.attribute(object, name)
}
