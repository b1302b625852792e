package jinja

import (
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

func doEscape(s *state, args []py.Value) (py.Value, error) { return escape(s.budget, args[0]) }

// doForceEscape escapes a value even if it is HTML already.
func doForceEscape(s *state, args []py.Value) (py.Value, error) {
	text, err := plainString(s.budget, args[0])
	if err != nil {
		return nil, err
	}
	return escape(s.budget, text)
}

func doSafe(s *state, args []py.Value) (py.Value, error) {
	text, err := py.ToStr(s.budget, args[0])
	return py.Markup(text), err
}

func doStripTags(s *state, args []py.Value) (py.Value, error) {
	text, err := py.ToStr(s.budget, args[0])
	if err != nil {
		return nil, err
	}
	return s.method(py.Markup(text), "striptags")
}

// doXMLAttributes writes a dictionary as attributes of an element, without those that are None or undefined.
func doXMLAttributes(s *state, args []py.Value) (py.Value, error) {
	dict, err := items(args[0])
	if err != nil {
		return nil, err
	}
	attributes := textWriter{budget: s.budget}
	for i := range dict.Len() {
		key, value := dict.Entry(i)
		if isNone(value) || isUndefined(value) {
			continue
		}
		if attributes.text.Len() > 0 {
			err = attributes.write(" ")
		}
		if err == nil {
			err = s.writeXMLAttribute(&attributes, key, value)
		}
		if err != nil {
			return nil, err
		}
	}
	text := attributes.String()
	space, err := py.Truth(s.budget, args[1])
	if space && text != "" {
		text = " " + text
	}
	return s.markup(text), err
}

func (s *state) writeXMLAttribute(w *textWriter, key, value py.Value) error {
	name, isString := py.TextOf(key)
	if !isString {
		return raisef("TypeError", "expected string or bytes-like object, got '%s'", key.TypeName())
	}
	if strings.ContainsAny(name, " \t\n\r\f\v/>=") {
		return raisef("ValueError", "Invalid character in attribute name")
	}
	escapedName, err := py.Escape(s.budget, key)
	if err != nil {
		return err
	}
	escapedValue, err := py.Escape(s.budget, value)
	if err != nil {
		return err
	}
	return w.write(string(escapedName), `="`, string(escapedValue), `"`)
}

// items returns the dictionary whose items() a filter calls.
func items(value py.Value) (*py.Dict, error) {
	switch v := value.(type) {
	case *py.Dict:
		return v, nil
	case *py.Undefined:
		return nil, v.Err()
	}
	return nil, raisef("AttributeError", "'%s' object has no attribute 'items'", value.TypeName())
}

// doURLEncode quotes a string for a path, or pairs for a query.
func doURLEncode(s *state, args []py.Value) (py.Value, error) {
	quoted := textWriter{budget: s.budget}
	if !isIterable(args[0]) {
		err := s.writeQuoted(&quoted, args[0], false)
		return py.Str(quoted.String()), err
	}
	pairs := args[0]
	if dict, isDict := pairs.(*py.Dict); isDict {
		pairs = &py.DictView{Dict: dict, Kind: "dict_items"}
	}
	iterator, err := py.Iterate(s.budget, pairs)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		pair, ok, err := iterator.Next(s.budget)
		if err != nil {
			return nil, err
		}
		if !ok {
			return py.Str(quoted.String()), nil
		}
		if err := s.writeQueryPair(&quoted, pair, first); err != nil {
			return nil, err
		}
	}
}

// isIterable returns isinstance(value, Iterable), but false for strings.
func isIterable(value py.Value) bool {
	switch value.(type) {
	case *py.List, *py.Tuple, *py.Dict, *py.DictView, *py.Range, *py.Undefined, py.Bytes, py.Iterable:
		return true
	}
	return false
}

func (s *state) writeQueryPair(w *textWriter, pair py.Value, first bool) error {
	parts, err := s.unpackPair(pair)
	if err != nil {
		return err
	}
	if !first {
		if err := w.write("&"); err != nil {
			return err
		}
	}
	if err := s.writeQuoted(w, parts[0], true); err != nil {
		return err
	}
	if err := w.write("="); err != nil {
		return err
	}
	return s.writeQuoted(w, parts[1], true)
}

// unpackPair does "key, value = pair".
func (s *state) unpackPair(pair py.Value) ([2]py.Value, error) {
	var parts [2]py.Value
	iterator, err := py.Iterate(s.budget, pair)
	if raised(err, "TypeError") {
		return parts, raisef("TypeError", "cannot unpack non-iterable %s object", pair.TypeName())
	}
	if err != nil {
		return parts, err
	}
	for i := range parts {
		part, ok, err := iterator.Next(s.budget)
		if err != nil {
			return parts, err
		}
		if !ok {
			return parts, raisef("ValueError", "not enough values to unpack (expected 2, got %d)", i)
		}
		parts[i] = part
	}
	if _, ok, err := iterator.Next(s.budget); ok || err != nil {
		if err == nil {
			err = raisef("ValueError", "too many values to unpack (expected 2)")
		}
		return parts, err
	}
	return parts, nil
}

// unquoted has the characters besides letters and digits that are never quoted in a URL.
const unquoted = "_.-~"

// writeQuoted quotes value for a query, with + for spaces, or for a path, without quoting slashes.
func (s *state) writeQuoted(w *textWriter, value py.Value, query bool) error {
	text, err := quotable(s.budget, value)
	if err != nil {
		return err
	}
	if err := w.reserve(3 * len(text)); err != nil {
		return err
	}
	const digits = "0123456789ABCDEF"
	for i := range len(text) {
		switch c := text[i]; {
		case isASCIIAlphanumeric(c) || strings.IndexByte(unquoted, c) >= 0 || c == '/' && !query:
			w.text.WriteByte(c)
		case c == ' ' && query:
			w.text.WriteByte('+')
		default:
			w.text.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return nil
}

func isASCIIAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// quotable returns the bytes of value that are quoted for a URL.
func quotable(b *py.Budget, value py.Value) (string, error) {
	if raw, isBytes := value.(py.Bytes); isBytes {
		return string(raw), nil
	}
	return py.ToStr(b, value)
}
