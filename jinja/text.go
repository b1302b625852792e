package jinja

import (
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

// textWriter builds a text within the budget.
type textWriter struct {
	budget *py.Budget
	text   strings.Builder
}

func (w *textWriter) write(pieces ...string) error {
	for _, piece := range pieces {
		if err := w.reserve(len(piece)); err != nil {
			return err
		}
		w.text.WriteString(piece)
	}
	return nil
}

// reserve takes the memory of n more bytes.
func (w *textWriter) reserve(n int) error { return w.budget.Append(w.text.Len(), n) }

func (w *textWriter) String() string { return w.text.String() }

// softString returns value as a string; HTML remains HTML.
func softString(b *py.Budget, value py.Value) (py.Value, error) {
	if _, isString := py.TextOf(value); isString {
		return value, nil
	}
	return plainString(b, value)
}

// plainString returns str(value).
func plainString(b *py.Budget, value py.Value) (py.Value, error) {
	text, err := py.ToStr(b, value)
	return py.Str(text), err
}

// escape returns value as HTML.
func escape(b *py.Budget, value py.Value) (py.Value, error) { return py.Escape(b, value) }

// markup returns text; as HTML if automatic escaping is on.
func (s *state) markup(text string) py.Value {
	if s.autoescape {
		return py.Markup(text)
	}
	return py.Str(text)
}

// valueSize is the approximate size of a value in a list, in bytes.
const valueSize = 32
