package source

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// within returns the position in the file of a line and column of a scalar's text. If it cannot be determined, it is
// the beginning of the scalar.
func within(lines []string, node *yaml.Node, line, column int) place {
	written := layout(lines, node)
	if written == nil {
		return start(node)
	}
	index := indexOf(node.Value, line, column)
	if index < len(written) {
		return written[index]
	}
	if len(written) == 0 {
		return start(node)
	}
	last := written[len(written)-1]
	return place{last.line, last.column + 1}
}

// indexOf returns the number of characters of a text before a line and column. It is limited to the length of the
// line and of the text.
func indexOf(text string, line, column int) int {
	index := 0
	for current, rest := 1, text; rest != ""; index++ {
		r, size := utf8.DecodeRuneInString(rest)
		isBreak := r == '\n' || r == '\r'
		if current == line && (column <= 1 || isBreak) {
			return index
		}
		switch {
		case isBreak && strings.HasPrefix(rest, "\r\n"):
			size, index = 2, index+1
			current++
		case isBreak:
			current++
		case current == line:
			column--
		}
		rest = rest[size:]
	}
	return index
}

// layout returns the position in the file of each character of a scalar's text; nil if it cannot be determined. It
// compares the characters that it finds with the text.
func layout(lines []string, node *yaml.Node) []place {
	w := &writing{lines: lines}
	at, ok := w.content(start(node))
	if !ok {
		return nil
	}
	switch {
	case node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return blockLayout(lines, at, node)
	case node.Style&yaml.DoubleQuotedStyle != 0:
		ok = w.quoted(at, '"')
	case node.Style&yaml.SingleQuotedStyle != 0:
		ok = w.quoted(at, '\'')
	default:
		ok = w.plain(at, utf8.RuneCountInString(node.Value))
	}
	if !ok || string(w.text) != node.Value {
		return nil
	}
	return w.places
}

// writing is the part of a scalar's text that has been read from the file.
type writing struct {
	lines  []string
	text   []rune
	places []place

	// number is the number of the current line.
	number  int
	current []rune
}

func (w *writing) emit(r rune, at place) {
	w.text = append(w.text, r)
	w.places = append(w.places, at)
}

// at returns the character at a position: '\n' at the end of a line. It returns false after the end of the file.
func (w *writing) at(p place) (rune, bool) {
	if p.line < 1 || p.line > len(w.lines) {
		return 0, false
	}
	if w.number != p.line {
		w.number, w.current = p.line, []rune(w.lines[p.line-1])
	}
	if p.column > len(w.current) {
		return '\n', p.line < len(w.lines)
	}
	return w.current[p.column-1], true
}

// next returns the following position.
func (w *writing) next(p place) place {
	if r, _ := w.at(p); r == '\n' {
		return place{p.line + 1, 1}
	}
	return place{p.line, p.column + 1}
}

// content returns the position after a scalar's anchor and tag.
func (w *writing) content(p place) (place, bool) {
	for {
		r, ok := w.at(p)
		switch {
		case !ok:
			return p, false
		case isBlank(r) || r == '\n':
			p = w.next(p)
		case r == '&' || r == '!':
			for ok && !isBlank(r) && r != '\n' {
				p = w.next(p)
				r, ok = w.at(p)
			}
		default:
			return p, true
		}
	}
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }
