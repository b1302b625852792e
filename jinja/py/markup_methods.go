package py

import (
	"maps"
	"slices"
)

// markupMethods has the methods of Markup. Methods of str that return a text return Markup and escape their arguments; the
// other methods of str are the same, and some methods exist only for Markup.
var markupMethods = func() map[string]method {
	methods := maps.Clone(strMethods)
	for _, name := range markupEscaping {
		methods[name] = escaping(methods[name])
	}
	for _, name := range []string{"split", "rsplit", "splitlines"} {
		methods[name] = giving(markupItems, methods[name])
	}
	maps.Copy(methods, map[string]method{
		"partition":  {params: []Param{{Name: "sep"}}, run: partitionMarkup(strPartition)},
		"rpartition": {params: []Param{{Name: "sep"}}, run: partitionMarkup(strRightPartition)},
		"join":       {params: []Param{{Name: "seq"}}, run: markupJoin},
		"escape":     {params: []Param{{Name: "s"}}, run: markupEscape},
		"unescape":   onStr(nil, markupUnescape),
		"striptags":  onStr(nil, markupStripTags),
	})
	for name, m := range methods {
		m.inPython = slices.Contains(markupOwn, name)
		methods[name] = m
	}
	return methods
}()

var (
	markupEscaping = []string{
		"capitalize", "title", "lower", "upper", "replace", "ljust", "rjust", "lstrip", "rstrip", "center", "strip",
		"translate", "expandtabs", "swapcase", "zfill",
	}
	markupOwn = append([]string{
		"split", "rsplit", "splitlines", "partition", "rpartition", "join", "escape", "unescape", "striptags",
	}, markupEscaping...)
)

// escaping returns a method of str as a method of Markup.
func escaping(of method) method {
	return method{params: of.params, run: func(b *Budget, self Value, args []Value) (Value, error) {
		escaped := make([]Value, len(args))
		for i, arg := range args {
			var err error
			if escaped[i], err = escapeText(b, arg); err != nil {
				return nil, err
			}
		}
		result, err := of.run(b, self, escaped)
		if err != nil {
			return nil, err
		}
		text, _ := TextOf(result)
		return Markup(text), nil
	}}
}

// escapeText escapes text and HTML, and returns other values unchanged.
func escapeText(b *Budget, v Value) (Value, error) {
	if _, isText := TextOf(v); isText {
		return Escape(b, v)
	}
	html, ok, err := htmlOf(b, v)
	if err != nil || !ok {
		return v, err
	}
	return html, nil
}

// giving returns a method whose result is converted.
func giving(result func(Value) Value, of method) method {
	return method{params: of.params, run: func(b *Budget, self Value, args []Value) (Value, error) {
		v, err := of.run(b, self, args)
		if err != nil {
			return nil, err
		}
		return result(v), nil
	}}
}

// markupItems converts the strings in a new list or tuple to Markup.
func markupItems(v Value) Value {
	items := []Value(nil)
	switch v := v.(type) {
	case *List:
		items = v.Items
	case *Tuple:
		items = v.Items
	}
	for i, item := range items {
		text, _ := TextOf(item)
		items[i] = Markup(text)
	}
	return v
}

func partitionMarkup(of strMethod) func(b *Budget, self Value, args []Value) (Value, error) {
	return func(b *Budget, self Value, args []Value) (Value, error) {
		sep, err := Escape(b, args[0])
		if err != nil {
			return nil, err
		}
		s, _ := TextOf(self)
		parts, err := of(b, s, []Value{sep})
		if err != nil {
			return nil, err
		}
		return markupItems(parts), nil
	}
}

func markupEscape(b *Budget, _ Value, args []Value) (Value, error) { return Escape(b, args[0]) }

func markupJoin(b *Budget, self Value, args []Value) (Value, error) {
	items, err := Collect(b, args[0])
	if err != nil {
		return nil, err
	}
	escaped := make([]Value, len(items))
	for i, item := range items {
		if escaped[i], err = Escape(b, item); err != nil {
			return nil, err
		}
	}
	s, _ := TextOf(self)
	joined, err := strJoin(b, s, []Value{&Tuple{Items: escaped}})
	if err != nil {
		return nil, err
	}
	text, _ := TextOf(joined)
	return Markup(text), nil
}
