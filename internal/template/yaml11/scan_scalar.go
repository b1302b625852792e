package yaml11

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// plainScalar scans a scalar without quotes, which may go over several lines.
func (s *scanner) plainScalar() (token, error) {
	t := token{kind: scalar, mark: s.mark, plain: true}
	var text strings.Builder
	indent := s.indent + 1
	spaces := ""
	for s.at(0) != '#' {
		n := 0
		for !s.endsPlain(n) {
			n++
		}
		if n == 0 {
			break
		}
		s.keyAllowed = false
		text.WriteString(spaces)
		text.WriteString(s.take(n))
		spaces = s.plainSpaces()
		if spaces == "" || s.flow == 0 && s.column < indent {
			break
		}
	}
	t.text = text.String()
	return t, nil
}

// endsPlain reports whether the character at an offset is none of a plain scalar.
func (s *scanner) endsPlain(offset int) bool {
	r := s.at(offset)
	switch {
	case isBlankOrEnd(r):
		return true
	case r == ':':
		next := s.at(offset + 1)
		return isBlankOrEnd(next) || s.flow > 0 && strings.ContainsRune(",[]{}", next)
	default:
		return s.flow > 0 && strings.ContainsRune(",?[]{}", r)
	}
}

// plainSpaces goes over spaces and line breaks inside a plain scalar and returns what they stand for;
// "" if they end it.
func (s *scanner) plainSpaces() string {
	start := s.index
	s.skipSpaces()
	if !isBreak(s.at(0)) {
		return string(s.text[start:s.index])
	}
	first := s.lineBreak()
	s.keyAllowed = true
	var breaks strings.Builder
	for !s.separator() {
		switch {
		case s.at(0) == ' ':
			s.skipSpaces()
			if !isBreak(s.at(0)) {
				return folded(first, breaks.String())
			}
		case isBreak(s.at(0)):
			breaks.WriteString(s.lineBreak())
		default:
			return folded(first, breaks.String())
		}
	}
	return ""
}

// folded is what a line break and the further ones after it stand for: a single one is a space.
func folded(first, breaks string) string {
	switch {
	case first != "\n":
		return first + breaks
	case breaks == "":
		return " "
	default:
		return breaks
	}
}

// quotedScalar scans a scalar in single or double quotes.
func (s *scanner) quotedScalar() (token, error) {
	t := token{kind: scalar, mark: s.mark}
	quote := s.at(0)
	s.skip(1)
	var text strings.Builder
	for {
		if err := s.quotedText(quote, &text); err != nil {
			return t, err
		}
		if s.at(0) == quote {
			s.skip(1)
			t.text = text.String()
			return t, nil
		}
		if err := s.quotedSpaces(&text); err != nil {
			return t, err
		}
	}
}

// quotedText scans up to a blank, a line break or the closing quote.
func (s *scanner) quotedText(quote rune, text *strings.Builder) error {
	for {
		r := s.at(0)
		switch {
		case isBlankOrEnd(r):
			return nil
		case r == quote:
			if quote == '"' || s.at(1) != '\'' {
				return nil
			}
			s.skip(2)
			text.WriteRune(r)
		case r == '\\' && quote == '"':
			if err := s.escape(text); err != nil {
				return err
			}
		default:
			s.skip(1)
			text.WriteRune(r)
		}
	}
}

var escapes = map[rune]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b",
	' ': " ", '"': `"`, '\\': `\`, '/': "/", 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

// escapeDigits are how many digits follow.
var escapeDigits = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// escape scans a backslash and what belongs to it.
func (s *scanner) escape(text *strings.Builder) error {
	start := s.mark
	s.skip(1)
	r := s.at(0)
	if isBreak(r) {
		s.lineBreak()
		return s.quotedBreaks(text)
	}
	if replacement, ok := escapes[r]; ok {
		s.skip(1)
		text.WriteString(replacement)
		return nil
	}
	digits, ok := escapeDigits[r]
	if !ok {
		return start.errorf("there is no such escape; write \\\\ for a backslash")
	}
	s.skip(1)
	code, err := s.hexadecimal(digits)
	if err != nil {
		return err
	}
	if digits == 4 && utf16.IsSurrogate(rune(code)) {
		if code, err = s.secondHalf(code); err != nil {
			return err
		}
	}
	if code > utf8.MaxRune || !utf8.ValidRune(rune(code)) {
		return start.errorf("there is no character of this code")
	}
	text.WriteRune(rune(code))
	return nil
}

// secondHalf scans the escape of the other half of a character that JSON writes as two.
func (s *scanner) secondHalf(first uint32) (uint32, error) {
	if s.at(0) != '\\' || s.at(1) != 'u' {
		return first, nil
	}
	s.skip(2)
	second, err := s.hexadecimal(escapeDigits['u'])
	if whole := utf16.DecodeRune(rune(first), rune(second)); whole != utf8.RuneError {
		return uint32(whole), err
	}
	return first, err
}

// quotedSpaces goes over blanks and line breaks inside quotes.
func (s *scanner) quotedSpaces(text *strings.Builder) error {
	n := 0
	for r := s.at(0); r == ' ' || r == '\t'; r = s.at(n) {
		n++
	}
	blanks := s.take(n)
	switch {
	case s.at(0) == end:
		return s.errorf("the closing quote is missing")
	case !isBreak(s.at(0)):
		text.WriteString(blanks)
		return nil
	}
	first := s.lineBreak()
	var breaks strings.Builder
	if err := s.quotedBreaks(&breaks); err != nil {
		return err
	}
	text.WriteString(folded(first, breaks.String()))
	return nil
}

// quotedBreaks goes over empty lines and the blanks that a line begins with.
func (s *scanner) quotedBreaks(text *strings.Builder) error {
	for {
		if s.separator() {
			return s.errorf("a line inside quotes begins with '---' or '...'")
		}
		for s.at(0) == ' ' || s.at(0) == '\t' {
			s.skip(1)
		}
		if !isBreak(s.at(0)) {
			return nil
		}
		text.WriteString(s.lineBreak())
	}
}
