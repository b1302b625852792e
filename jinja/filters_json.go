package jinja

import (
	"fmt"
	"math"

	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/albertofaria/pav/jinja/py"
)

// jsonEscapes makes JSON safe for HTML. It is applied to the whole text, as an indentation can be any string.
var jsonEscapes = strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`, "'", `\u0027`)

// escapedSize is how many bytes jsonEscapes writes for one byte.
const escapedSize = 6

func doToJSON(s *state, args []py.Value) (py.Value, error) {
	value, indent := args[0], args[1]
	e := jsonEncoder{textWriter: textWriter{budget: s.budget}}
	if _, isString := py.TextOf(value); !isString && !isNone(indent) {
		if err := e.indentBy(s, indent); err != nil {
			return nil, err
		}
	}
	if err := e.value(value); err != nil {
		return nil, err
	}
	text := e.String()
	unsafe := 0
	for _, c := range []string{"<", ">", "&", "'"} {
		unsafe += strings.Count(text, c)
	}
	if err := s.budget.Text(len(text) + unsafe*(escapedSize-1)); err != nil {
		return nil, err
	}
	return py.Markup(jsonEscapes.Replace(text)), nil
}

// jsonEncoder writes JSON as Python's json.dumps does, with sorted keys and in ASCII.
type jsonEncoder struct {
	textWriter

	// indented says that the text has several lines; each begins with indent, repeated for each level.
	indented bool
	indent   string
	level    int
	// escape says that the indentation is HTML, so the text that is added to it becomes HTML.
	escape bool
}

func (e *jsonEncoder) indentBy(s *state, indent py.Value) error {
	e.indented = true
	e.escape = isMarkup(indent)
	text, isString := py.TextOf(indent)
	if !isString {
		spaces, err := py.Binary(s.budget, py.OpMul, py.Str(" "), indent)
		if err != nil {
			return err
		}
		text, _ = py.TextOf(spaces)
	}
	e.indent = text
	return nil
}

func (e *jsonEncoder) value(value py.Value) error {
	switch v := value.(type) {
	case *py.List:
		return e.list(v.Items)
	case *py.Tuple:
		return e.list(v.Items)
	case *py.Dict:
		return e.dict(v)
	}
	text, err := e.scalar(value)
	if err != nil {
		return err
	}
	return e.write(text)
}

func (e *jsonEncoder) scalar(value py.Value) (string, error) {
	switch v := value.(type) {
	case py.None:
		return "null", nil
	case py.Bool:
		return strconv.FormatBool(bool(v)), nil
	case py.Int:
		return py.ToStr(e.budget, v)
	case py.Float:
		return jsonFloat(float64(v)), nil
	case py.Str:
		return e.quote(string(v))
	case py.Markup:
		return e.quote(string(v))
	}
	return "", raisef("TypeError", "Object of type %s is not JSON serializable", value.TypeName())
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return py.FloatText(f)
}

// jsonShort has the characters with a short escape.
var jsonShort = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`,
}

func (e *jsonEncoder) quote(text string) (string, error) {
	if err := e.budget.Text(escapedSize*len(text) + 2); err != nil {
		return "", err
	}
	quoted := make([]byte, 0, len(text)+2)
	quoted = append(quoted, '"')
	for _, r := range text {
		switch short, isShort := jsonShort[r]; {
		case isShort:
			quoted = append(quoted, short...)
		case r >= ' ' && r <= '~':
			quoted = append(quoted, byte(r))
		default:
			quoted = appendUnicode(quoted, r)
		}
	}
	return string(append(quoted, '"')), nil
}

// appendUnicode appends the escape of r, or those of its surrogates.
func appendUnicode(to []byte, r rune) []byte {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return appendUnicode(appendUnicode(to, high), low)
	}
	return fmt.Appendf(to, `\u%04x`, r)
}

func (e *jsonEncoder) list(items []py.Value) error {
	if len(items) == 0 {
		return e.write("[]")
	}
	return e.nested("[", "]", len(items), func(i int) error {
		if !e.escape {
			return e.value(items[i])
		}
		return e.escapedItem(items[i])
	})
}

// escapedItem writes an item of a list after an indentation that is HTML.
func (e *jsonEncoder) escapedItem(item py.Value) error {
	switch item.(type) {
	case *py.List, *py.Tuple, *py.Dict:
		return e.value(item)
	}
	text, err := e.scalar(item)
	if err != nil {
		return err
	}
	escaped, err := py.Escape(e.budget, py.Str(text))
	if err != nil {
		return err
	}
	return e.write(string(escaped))
}

func (e *jsonEncoder) dict(dict *py.Dict) error {
	if dict.Len() == 0 {
		return e.write("{}")
	}
	entries, err := e.sortedEntries(dict)
	if err != nil {
		return err
	}
	return e.nested("{", "}", len(entries), func(i int) error {
		name, err := e.key(entries[i].key)
		if err != nil {
			return err
		}
		quoted, err := e.quote(name)
		if err != nil {
			return err
		}
		if err := e.write(quoted, ": "); err != nil {
			return err
		}
		return e.value(entries[i].item)
	})
}

// nested writes n members between brackets.
func (e *jsonEncoder) nested(begin, end string, n int, member func(i int) error) error {
	if err := e.budget.Enter(); err != nil {
		return err
	}
	defer e.budget.Leave()
	if err := e.write(begin); err != nil {
		return err
	}
	e.level++
	separator := ""
	for i := range n {
		if err := e.write(separator); err != nil {
			return err
		}
		if err := e.newLine(); err != nil {
			return err
		}
		if err := member(i); err != nil {
			return err
		}
		separator = ", "
		if e.indented {
			separator = ","
		}
	}
	e.level--
	if err := e.newLine(); err != nil {
		return err
	}
	return e.write(end)
}

func (e *jsonEncoder) newLine() error {
	if !e.indented {
		return nil
	}
	if err := e.write("\n"); err != nil {
		return err
	}
	for range e.level {
		if err := e.write(e.indent); err != nil {
			return err
		}
	}
	return nil
}

// sortedEntries returns the entries of dict in the order of their keys, which must be comparable.
func (e *jsonEncoder) sortedEntries(dict *py.Dict) ([]keyed, error) {
	if err := e.budget.Alloc(2 * valueSize * dict.Len()); err != nil {
		return nil, err
	}
	entries := make([]keyed, dict.Len())
	for i := range entries {
		entries[i].key, entries[i].item = dict.Entry(i)
	}
	sort := sorting{less: func(x, y keyed) (bool, error) { return py.Compare(e.budget, py.OpLt, x.key, y.key) }}
	sort.sort(entries)
	return entries, sort.err
}

// key returns the name of a key in JSON.
func (e *jsonEncoder) key(key py.Value) (string, error) {
	if name, isString := py.TextOf(key); isString {
		return name, nil
	}
	switch key.(type) {
	case py.None, py.Bool, py.Int, py.Float:
		return e.scalar(key)
	}
	return "", raisef("TypeError", "keys must be str, int, float, bool or None, not %s", key.TypeName())
}
