package yaml11

import (
	"strings"
	"unicode/utf8"
)

// Limits bound what texts may stand for.
type Limits struct {
	// Text is how many bytes a text may have.
	Text int

	// Depth is how deep values may be nested.
	Depth int

	// Nodes is how many values there may be, each counted as often as aliases and merges repeat it. What a
	// text stands for is taken off.
	Nodes int

	// Expanded is how many bytes the texts in it may have, counted alike.
	Expanded int
}

// LimitsFor returns limits for some bytes of text, which only a text meets that means to.
func LimitsFor(text int) *Limits {
	return &Limits{Text: text, Depth: 100, Nodes: text/32 + 1000, Expanded: 4 * text}
}

// Parse returns what a text stands for: nil, bool, int64, json.Number for larger integers, float64,
// string, []any, map[string]any, Date, Timestamp, Bytes or Set. An error is an *Error.
//
// What PyYAML returns, Parse returns, or else it refuses the text: a mapping with a key that JSON cannot
// have, or with two that are one there, such as 1 and "1" (keys become what Python's json makes of them);
// a value that is a part of itself; half a surrogate pair; numbers that only a tag makes numbers, in forms
// that YAML does not have; and what goes beyond the limits.
func Parse(text string, limits *Limits) (any, error) {
	if len(text) > limits.Text {
		return nil, mark{}.errorf("the text is longer than %d bytes", limits.Text)
	}
	if err := checkPrintable(text); err != nil {
		return nil, err
	}
	p := &parser{scanner: newScanner(text), limits: *limits, handles: defaultHandles, anchors: map[string]*node{}}
	root, err := p.document()
	if err != nil || root == nil {
		return nil, err
	}
	c := &constructor{limits: limits, readers: readers}
	return c.construct(root)
}

// checkPrintable refuses control characters, and what is not UTF-8.
func checkPrintable(text string) error {
	if !utf8.ValidString(text) {
		return mark{}.errorf("the text is not UTF-8")
	}
	if !strings.ContainsFunc(text, isUnprintable) {
		return nil
	}
	s := newScanner(text)
	for !isUnprintable(s.at(0)) {
		s.skip(1)
	}
	return s.errorf("the character %U cannot stand in YAML", s.at(0))
}

func isUnprintable(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == '\u0085', ' ' <= r && r <= '~':
		return false
	default:
		return r < '\u00a0' || r == '\ufffe' || r == '\uffff'
	}
}
