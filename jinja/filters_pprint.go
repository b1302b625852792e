package jinja

import (
	"strings"
	"unicode/utf8"

	"github.com/albertofaria/pav/jinja/py"
)

// pprintWidth is the width of lines of Python's pprint.
const pprintWidth = 80

func doPrettyPrint(s *state, args []py.Value) (py.Value, error) {
	p := prettyPrinter{textWriter: textWriter{budget: s.budget}, s: s}
	err := p.value(args[0], 0, 0, true)
	return py.Str(p.String()), err
}

// prettyPrinter writes values as Python's pprint does: on one line if there is room, and otherwise with each member on a
// line of its own. Indent is the column where a value begins; allowance is the room that is needed after it.
type prettyPrinter struct {
	textWriter

	s *state
}

func (p *prettyPrinter) value(value py.Value, indent, allowance int, top bool) error {
	oneLine, err := p.repr(value)
	if err != nil {
		return err
	}
	if utf8.RuneCountInString(oneLine) <= pprintWidth-indent-allowance {
		return p.write(oneLine)
	}
	switch v := value.(type) {
	case *py.Dict:
		return p.dict(v, indent, allowance)
	case *py.List:
		return p.items("[", v.Items, "]", indent, allowance)
	case *py.Tuple:
		if v.Fields == nil {
			return p.items("(", v.Items, tupleEnd(v), indent, allowance)
		}
	case py.Str:
		if v != "" {
			return p.text(string(v), indent, allowance, top)
		}
	case py.Bytes:
		if len(v) > bytesChunk {
			return p.bytes(string(v), indent, allowance, top)
		}
	}
	return p.write(oneLine)
}

// tupleEnd closes a tuple; one with a single item has a comma.
func tupleEnd(t *py.Tuple) string {
	if len(t.Items) == 1 {
		return ",)"
	}
	return ")"
}

func (p *prettyPrinter) items(begin string, items []py.Value, end string, indent, allowance int) error {
	return p.lines(begin, len(items), end, indent, allowance, func(i, indent, allowance int) error {
		return p.value(items[i], indent, allowance, false)
	})
}

func (p *prettyPrinter) dict(dict *py.Dict, indent, allowance int) error {
	entries, err := p.sortedEntries(dict)
	if err != nil {
		return err
	}
	return p.lines("{", len(entries), "}", indent, allowance, func(i, indent, allowance int) error {
		key, err := p.repr(entries[i].key)
		if err != nil {
			return err
		}
		if err := p.write(key, ": "); err != nil {
			return err
		}
		return p.value(entries[i].item, indent+utf8.RuneCountInString(key)+2, allowance, false)
	})
}

// lines writes n members, each on a line of its own.
func (p *prettyPrinter) lines(
	begin string, n int, end string, indent, allowance int, member func(i, indent, allowance int) error,
) error {
	if err := p.budget.Enter(); err != nil {
		return err
	}
	defer p.budget.Leave()
	if err := p.write(begin); err != nil {
		return err
	}
	indent++
	for i := range n {
		room := 1
		if i == n-1 {
			room = allowance + len(end)
		}
		if err := member(i, indent, room); err != nil {
			return err
		}
		if i < n-1 {
			if err := p.write(",\n", strings.Repeat(" ", indent)); err != nil {
				return err
			}
		}
	}
	return p.write(end)
}

// text writes a long string as several strings, each of which ends with white space.
func (p *prettyPrinter) text(text string, indent, allowance int, top bool) error {
	if top {
		indent++
		allowance++
	}
	chunks, err := p.chunks(text, pprintWidth-indent, allowance)
	if err != nil {
		return err
	}
	return p.writeChunks(chunks, indent, top && len(chunks) > 1)
}

// writeChunks writes representations below each other.
func (p *prettyPrinter) writeChunks(chunks []string, indent int, parenthesized bool) error {
	begin, end := "", ""
	if parenthesized {
		begin, end = "(", ")"
	}
	separator := begin
	for _, chunk := range chunks {
		if err := p.write(separator, chunk); err != nil {
			return err
		}
		separator = "\n" + strings.Repeat(" ", indent)
	}
	return p.write(end)
}

// chunks returns the representations of the parts of text; each fills the room of one line.
func (p *prettyPrinter) chunks(text string, width, allowance int) ([]string, error) {
	lines, err := p.s.method(py.Str(text), "splitlines", py.Bool(true))
	if err != nil {
		return nil, err
	}
	list, err := py.Collect(p.budget, lines)
	if err != nil {
		return nil, err
	}
	var chunks []string
	for i, line := range list {
		text, _ := py.TextOf(line)
		room := 0
		if i == len(list)-1 {
			room = allowance
		}
		if chunks, err = p.appendLine(chunks, text, width, room); err != nil {
			return nil, err
		}
	}
	return chunks, nil
}

func (p *prettyPrinter) appendLine(chunks []string, line string, width, allowance int) ([]string, error) {
	whole, err := p.repr(py.Str(line))
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(whole) <= width-allowance {
		return append(chunks, whole), nil
	}
	current, currentRepr := "", ""
	for line != "" {
		part := firstWord(line)
		line = line[len(part):]
		if line == "" {
			width -= allowance
		}
		candidate, err := p.repr(py.Str(current + part))
		if err != nil {
			return nil, err
		}
		if utf8.RuneCountInString(candidate) <= width {
			current, currentRepr = current+part, candidate
			continue
		}
		if current != "" {
			chunks = append(chunks, currentRepr)
		}
		current = part
		if currentRepr, err = p.repr(py.Str(part)); err != nil {
			return nil, err
		}
	}
	return append(chunks, currentRepr), nil
}

// firstWord returns the first word of text, and the white space after it.
func firstWord(text string) string {
	space := strings.IndexFunc(text, py.IsSpaceRune)
	if space < 0 {
		return text
	}
	return text[:len(text)-len(strings.TrimLeftFunc(text[space:], py.IsSpaceRune))]
}

// bytesChunk is how many bytes stay together.
const bytesChunk = 4

func (p *prettyPrinter) bytes(raw string, indent, allowance int, top bool) error {
	if top {
		indent++
		allowance++
	}
	width := pprintWidth - indent
	var chunks []string
	current, currentRepr := "", ""
	last := len(raw) / bytesChunk * bytesChunk
	for i := 0; i < len(raw); i += bytesChunk {
		part := raw[i:min(i+bytesChunk, len(raw))]
		if i == last {
			width -= allowance
		}
		candidate, err := p.repr(py.Bytes(current + part))
		if err != nil {
			return err
		}
		if len(candidate) <= width {
			current, currentRepr = current+part, candidate
			continue
		}
		if current != "" {
			chunks = append(chunks, currentRepr)
		}
		current = part
		if currentRepr, err = p.repr(py.Bytes(part)); err != nil {
			return err
		}
	}
	return p.writeChunks(append(chunks, currentRepr), indent, top)
}

// repr returns the representation of value on one line, with sorted keys of dictionaries.
func (p *prettyPrinter) repr(value py.Value) (string, error) {
	if err := p.budget.Enter(); err != nil {
		return "", err
	}
	defer p.budget.Leave()
	switch v := value.(type) {
	case *py.Dict:
		return p.reprDict(v)
	case *py.List:
		return p.reprItems("[", v.Items, "]")
	case *py.Tuple:
		if v.Fields == nil {
			return p.reprItems("(", v.Items, tupleEnd(v))
		}
	}
	return py.Repr(p.budget, value)
}

func (p *prettyPrinter) reprItems(begin string, items []py.Value, end string) (string, error) {
	w := textWriter{budget: p.budget}
	separator := begin
	for _, item := range items {
		text, err := p.repr(item)
		if err != nil {
			return "", err
		}
		if err := w.write(separator, text); err != nil {
			return "", err
		}
		separator = ", "
	}
	if len(items) == 0 {
		end = begin + end
	}
	err := w.write(end)
	return w.String(), err
}

func (p *prettyPrinter) reprDict(dict *py.Dict) (string, error) {
	entries, err := p.sortedEntries(dict)
	if err != nil {
		return "", err
	}
	w := textWriter{budget: p.budget}
	separator := "{"
	for _, entry := range entries {
		key, err := p.repr(entry.key)
		if err != nil {
			return "", err
		}
		value, err := p.repr(entry.item)
		if err != nil {
			return "", err
		}
		if err := w.write(separator, key, ": ", value); err != nil {
			return "", err
		}
		separator = ", "
	}
	if len(entries) == 0 {
		return "{}", nil
	}
	err = w.write("}")
	return w.String(), err
}

// sortedEntries returns the entries of dict by key. Keys that cannot be compared are sorted by the names of their types.
func (p *prettyPrinter) sortedEntries(dict *py.Dict) ([]keyed, error) {
	if err := p.budget.Alloc(2 * valueSize * dict.Len()); err != nil {
		return nil, err
	}
	entries := make([]keyed, dict.Len())
	for i := range entries {
		entries[i].key, entries[i].item = dict.Entry(i)
	}
	sort := sorting{less: func(x, y keyed) (bool, error) {
		less, err := py.Compare(p.budget, py.OpLt, x.key, y.key)
		if raised(err, "TypeError") {
			return qualifiedType(x.key) < qualifiedType(y.key), nil
		}
		return less, err
	}}
	sort.sort(entries)
	return entries, sort.err
}

// qualifiedType returns the name of a type, with that of its module unless it is a builtin type.
func qualifiedType(value py.Value) string {
	switch value.(type) {
	case py.Markup:
		return "markupsafe.Markup"
	case *py.Undefined:
		return "jinja2.runtime.Undefined"
	}
	return value.TypeName()
}
