package jinja

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/albertofaria/pav/jinja/py"
)

// doURLize makes links of the addresses in a text.
func doURLize(s *state, args []py.Value) (py.Value, error) {
	value, limit, noFollow, target, rel, schemes := args[0], args[1], args[2], args[3], args[4], args[5]
	l := linker{budget: s.budget, trim: func(text string) (string, error) { return s.trimURL(text, limit) }}
	attributes, err := s.linkAttributes(rel, noFollow, target)
	if err != nil {
		return nil, err
	}
	l.attributes = attributes
	if l.schemes, err = s.schemes(schemes); err != nil {
		return nil, err
	}
	text, err := py.Escape(s.budget, value)
	if err != nil {
		return nil, err
	}
	linked, err := s.linkWords(string(text), l)
	if err != nil {
		return nil, err
	}
	return s.markup(linked), nil
}

func (s *state) linkWords(text string, l linker) (string, error) {
	w := textWriter{budget: s.budget}
	for text != "" {
		word := text
		if end := strings.IndexFunc(text, py.IsSpaceRune); end >= 0 {
			word = text[:end]
		}
		text = text[len(word):]
		linked, err := l.link(word)
		if err != nil {
			return "", err
		}
		rest := strings.TrimLeftFunc(text, py.IsSpaceRune)
		if err := w.write(linked, text[:len(text)-len(rest)]); err != nil {
			return "", err
		}
		text = rest
	}
	return w.String(), nil
}

// linkAttributes returns rel and target of each link.
func (s *state) linkAttributes(rel, noFollow, target py.Value) (string, error) {
	c := calculation{s: s}
	relations := []string{"noopener"}
	if c.isTrue(rel) {
		for _, relation := range c.collect(c.method(rel, "split")) {
			text, isText := py.TextOf(relation)
			if !isText {
				return "", raisef("TypeError", "'<' not supported between instances of 'str' and '%s'", relation.TypeName())
			}
			relations = append(relations, text)
		}
	}
	if c.isTrue(noFollow) {
		relations = append(relations, "nofollow")
	}
	slices.Sort(relations)
	relation := py.Str(strings.Join(slices.Compact(relations), " "))
	escaped, _ := py.TextOf(c.value(func(b *py.Budget) (py.Value, error) { return escape(b, relation) }))
	attributes := ` rel="` + escaped + `"`
	if c.isTrue(target) {
		escaped, _ := py.TextOf(c.value(func(b *py.Budget) (py.Value, error) { return escape(b, target) }))
		attributes += ` target="` + escaped + `"`
	}
	return attributes, c.err
}

// schemes returns additional schemes of links. They are iterated over twice, as Jinja does: once to check them and once to
// use them; an iterator has no items the second time.
func (s *state) schemes(value py.Value) ([]string, error) {
	if isNone(value) {
		return nil, nil
	}
	checked, err := py.Collect(s.budget, value)
	if err != nil {
		return nil, err
	}
	for _, scheme := range checked {
		text, isString := py.TextOf(scheme)
		if !isString {
			return nil, raisef("TypeError", "expected string or bytes-like object, got '%s'", scheme.TypeName())
		}
		if !urlScheme.MatchString(asciiWord(text)) {
			return nil, raisef("FilterArgumentError", "an extra scheme is not a valid URI scheme prefix")
		}
	}
	used, err := py.Collect(s.budget, value)
	if err != nil {
		return nil, err
	}
	var schemes []string
	for _, scheme := range used {
		text, _ := py.TextOf(scheme)
		schemes = append(schemes, text)
	}
	return schemes, nil
}

// trimURL shortens the text of a link to limit; it compares and slices as Python does.
func (s *state) trimURL(text string, limit py.Value) (string, error) {
	if isNone(limit) {
		return text, nil
	}
	c := calculation{s: s}
	if !c.compare(py.OpGt, py.NewInt(int64(utf8.RuneCountInString(text))), limit) {
		return text, c.err
	}
	short, _ := py.TextOf(c.item(py.Str(text), &py.SliceKey{Stop: limit}))
	return short + "...", c.err
}
