package jinja

import (
	"math"
	"slices"

	"github.com/albertofaria/pav/jinja/py"
)

// doWordWrap wraps each line of a text separately.
func doWordWrap(s *state, args []py.Value) (py.Value, error) {
	text, between := args[0], args[3]
	if isNone(between) {
		between = py.Str("\n")
	}
	// Python looks the method up before it evaluates the arguments, so its error comes first.
	if err := s.hasMethod(between, "join"); err != nil {
		return nil, err
	}
	c := calculation{s: s}
	lines := c.collect(c.method(text, "splitlines"))
	wrapped := make([]py.Value, len(lines))
	for i, line := range lines {
		parts := c.value(func(*py.Budget) (py.Value, error) { return s.wrapLine(line, args) })
		wrapped[i] = c.method(between, "join", parts)
	}
	return c.result(c.method(between, "join", &py.List{Items: wrapped}))
}

// hasMethod returns the error that a call of the method returns if value has no such method.
func (s *state) hasMethod(value py.Value, name string) error {
	_, found, _, err := py.Attr(s.budget, value, name)
	if err == nil && !found {
		err = raisef("AttributeError", "'%s' object has no attribute '%s'", value.TypeName(), name)
	}
	return err
}

// chunkSize is the maximum number of bytes that one character takes in chunks and lines.
const chunkSize = 64

// wrapLine returns a list of the lines into which one line is wrapped.
func (s *state) wrapLine(line py.Value, args []py.Value) (py.Value, error) {
	c := calculation{s: s}
	text, isText := py.TextOf(line)
	if !isText {
		return nil, raisef("TypeError", "cannot use a string pattern on a bytes-like object")
	}
	if err := s.budget.Alloc(chunkSize * len(text)); err != nil {
		return nil, err
	}
	w := wrapper{breakLong: c.isTrue(args[2]), preferHyphens: c.isTrue(args[4])}
	chunks := wrapChunks([]rune(text), args[4] == py.Bool(true))
	if err := w.setWidth(&c, args[1]); err != nil {
		return nil, err
	}
	lines, err := w.lines(chunks)
	if err != nil {
		return nil, err
	}
	list := &py.List{Items: make([]py.Value, len(lines))}
	for i, line := range lines {
		list.Items[i] = py.Str(line)
	}
	return list, s.budget.Alloc(2 * valueSize * len(lines))
}

// wrapper fills lines with chunks of text, as Python's textwrap does.
type wrapper struct {
	width int
	// fractional says that the width is not an integer, so a word cannot be broken at it.
	fractional    bool
	breakLong     bool
	preferHyphens bool
}

func (w *wrapper) setWidth(c *calculation, width py.Value) error {
	if c.compare(py.OpLe, width, py.NewInt(0)) {
		return raisef("ValueError", "invalid width (must be > 0)")
	}
	if c.err != nil {
		return c.err
	}
	f, isFloat := width.(py.Float)
	if !isFloat {
		n, err := py.Index(width)
		w.width = clipped(n)
		return err
	}
	if math.IsNaN(float64(f)) {
		return &py.Error{Kind: py.Limit, Exception: "RuntimeError", Message: "nothing fits a width that is not a number"}
	}
	w.width = math.MaxInt
	if f < math.MaxInt32 {
		w.width = int(f)
	}
	// If not even one character fits, Python takes one, and does not slice by the width.
	w.fractional = f >= 1
	return nil
}

func (w *wrapper) lines(chunks [][]rune) ([]string, error) {
	var lines []string
	for len(chunks) > 0 {
		if len(lines) > 0 && isBlank(chunks[0]) {
			chunks = chunks[1:]
		}
		line, rest, err := w.fill(chunks)
		if err != nil {
			return nil, err
		}
		chunks = rest
		if n := len(line); n > 0 && isBlank(line[n-1]) {
			line = line[:n-1]
		}
		if len(line) > 0 {
			lines = append(lines, string(slices.Concat(line...)))
		}
	}
	return lines, nil
}

// fill takes the chunks that fit into one line, and a part of the next one if that is longer than a line.
func (w *wrapper) fill(chunks [][]rune) (line, rest [][]rune, err error) {
	room := w.width
	for len(chunks) > 0 && len(chunks[0]) <= room {
		room -= len(chunks[0])
		line, chunks = append(line, chunks[0]), chunks[1:]
	}
	if len(chunks) == 0 || len(chunks[0]) <= w.width {
		return line, chunks, nil
	}
	if !w.breakLong {
		if len(line) == 0 {
			line, chunks = chunks[:1], chunks[1:]
		}
		return line, chunks, nil
	}
	if w.width < 1 {
		room = 1
	}
	n, err := w.breakAt(chunks[0], room)
	if err != nil {
		return nil, nil, err
	}
	line, chunks[0] = append(line, chunks[0][:n]), chunks[0][n:]
	return line, chunks, nil
}

// breakAt returns how much of a word that is too long for a line fits into the rest of the line.
func (w *wrapper) breakAt(word []rune, room int) (int, error) {
	if w.fractional {
		return 0, raisef("TypeError", "slice indices must be integers or None or have an __index__ method")
	}
	if w.preferHyphens {
		hyphen := lastHyphen(word[:room])
		if hyphen > 0 && slices.ContainsFunc(word[:hyphen], func(r rune) bool { return r != '-' }) {
			return hyphen + 1, nil
		}
	}
	return room, nil
}

func lastHyphen(text []rune) int {
	for i, r := range slices.Backward(text) {
		if r == '-' {
			return i
		}
	}
	return -1
}

func isBlank(text []rune) bool {
	return !slices.ContainsFunc(text, func(r rune) bool { return !py.IsSpaceRune(r) })
}
