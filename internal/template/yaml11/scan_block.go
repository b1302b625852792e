package yaml11

import "strings"

// chomp is what happens to the line breaks at the end of a block scalar.
type chomp int

const (
	clip  chomp = iota // the first stays
	strip              // none stays
	keep               // all stay
)

// blockScalar scans | or > and the lines that belong to it.
func (s *scanner) blockScalar() (token, error) {
	t := token{kind: scalar, mark: s.mark}
	isFolded := s.at(0) == '>'
	s.skip(1)
	chomping, increment, err := s.blockHeader()
	if err != nil {
		return t, err
	}

	indent := max(s.indent+1, 1)
	var breaks string
	if increment > 0 {
		indent += increment - 1
		breaks = s.blockBreaks(indent)
	} else {
		var deepest int
		breaks, deepest = s.blockIndentation()
		indent = max(indent, deepest)
	}

	var text strings.Builder
	lineBreak := ""
	for s.column == indent && s.at(0) != end {
		text.WriteString(breaks)
		foldable := isFolded && !isTabOrSpace(s.at(0))
		text.WriteString(s.restOfText())
		lineBreak = s.lineBreak()
		breaks = s.blockBreaks(indent)
		if s.column != indent || s.at(0) == end {
			break
		}
		text.WriteString(joint(foldable && !isTabOrSpace(s.at(0)), lineBreak, breaks))
	}
	if chomping != strip {
		text.WriteString(lineBreak)
	}
	if chomping == keep {
		text.WriteString(breaks)
	}
	t.text = text.String()
	return t, nil
}

// restOfText takes what is left of a line.
func (s *scanner) restOfText() string {
	n := 0
	for !isBreakOrEnd(s.at(n)) {
		n++
	}
	return s.take(n)
}

// joint is what the line break between two lines of text stands for; breaks are the further ones, which
// stand for themselves.
func joint(foldable bool, lineBreak, breaks string) string {
	switch {
	case !foldable || lineBreak != "\n":
		return lineBreak
	case breaks == "":
		return " "
	default:
		return ""
	}
}

func isTabOrSpace(r rune) bool { return r == ' ' || r == '\t' }

// blockHeader scans what follows | or > on its line: + or -, and how much deeper the text is, or 0.
func (s *scanner) blockHeader() (chomping chomp, increment int, err error) {
	for range 2 {
		switch r := s.at(0); {
		case r == '+' && chomping == clip:
			chomping = keep
		case r == '-' && chomping == clip:
			chomping = strip
		case '1' <= r && r <= '9' && increment == 0:
			increment = int(r - '0')
		default:
			continue
		}
		s.skip(1)
	}
	if !isSpaceOrEnd(s.at(0)) {
		return clip, 0, s.errorf("'|' and '>' can be followed by '+' or '-', a digit from 1 to 9, and the end of the line")
	}
	return chomping, increment, s.restOfLine()
}

// blockIndentation goes to the first line with text and returns the line breaks before it, and the
// deepest indentation up to it.
func (s *scanner) blockIndentation() (breaks string, deepest int) {
	var text strings.Builder
	for {
		switch r := s.at(0); {
		case r == ' ':
			s.skip(1)
			deepest = max(deepest, s.column)
		case isBreak(r):
			text.WriteString(s.lineBreak())
		default:
			return text.String(), deepest
		}
	}
}

// blockBreaks goes over empty lines and the indentation of the first line that is not.
func (s *scanner) blockBreaks(indent int) string {
	var text strings.Builder
	for {
		for s.column < indent && s.at(0) == ' ' {
			s.skip(1)
		}
		if !isBreak(s.at(0)) {
			return text.String()
		}
		text.WriteString(s.lineBreak())
	}
}
