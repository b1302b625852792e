package yaml11

import (
	"strings"
	"unicode/utf8"
)

// anchorOrAlias scans &name or *name.
func (s *scanner) anchorOrAlias() (token, error) {
	t := token{kind: anchor, mark: s.mark}
	if s.at(0) == '*' {
		t.kind = alias
	}
	s.skip(1)
	t.text = s.word()
	if t.text == "" {
		return t, s.errorf("%s has no name of letters and digits", t.kind)
	}
	if r := s.at(0); !isBlankOrEnd(r) && !strings.ContainsRune("?:,]}%@`", r) {
		return t, s.errorf("the name of %s has a character that is not a letter, digit, '-' or '_'", t.kind)
	}
	return t, nil
}

func (s *scanner) word() string {
	n := 0
	for isWord(s.at(n)) {
		n++
	}
	return s.take(n)
}

// tag scans !, !<uri>, !suffix, !!suffix or !handle!suffix.
func (s *scanner) tag() (token, error) {
	t := token{kind: tag, mark: s.mark}
	var err error
	switch r := s.at(1); {
	case r == '<':
		s.skip(2)
		if t.text, err = s.uri(); err != nil {
			return t, err
		}
		if s.at(0) != '>' {
			return t, s.errorf("a tag that begins with '!<' must end with '>'")
		}
		s.skip(1)
	case isBlankOrEnd(r):
		t.text = "!"
		s.skip(1)
	default:
		if t.handle, err = s.handleOfTag(); err != nil {
			return t, err
		}
		if t.text, err = s.uri(); err != nil {
			return t, err
		}
	}
	if !isSpaceOrEnd(s.at(0)) {
		return t, s.errorf("a tag must be followed by a space")
	}
	return t, nil
}

// handleOfTag scans the ! of !suffix, and all up to the second ! of !handle!suffix.
func (s *scanner) handleOfTag() (string, error) {
	for n := 1; !isSpaceOrEnd(s.at(n)); n++ {
		if s.at(n) == '!' {
			return s.tagHandle()
		}
	}
	return s.take(1), nil
}

// tagHandle scans !, !! or !name!.
func (s *scanner) tagHandle() (string, error) {
	if s.at(0) != '!' {
		return "", s.errorf("a tag's handle must begin with '!'")
	}
	if s.at(1) == ' ' {
		return s.take(1), nil
	}
	n := 1
	for isWord(s.at(n)) {
		n++
	}
	if s.at(n) != '!' {
		return "", s.errorf("a tag's handle must end with '!'")
	}
	return s.take(n + 1), nil
}

// uri scans what may stand in a tag, with its %xx replaced by what they stand for.
func (s *scanner) uri() (string, error) {
	var text strings.Builder
	for {
		r := s.at(0)
		switch {
		case r == '%':
			escaped, err := s.uriEscapes()
			if err != nil {
				return "", err
			}
			text.WriteString(escaped)
		case isWord(r) || r != end && strings.ContainsRune(";/?:@&=+$,.!~*'()[]", r):
			text.WriteString(s.take(1))
		case text.Len() == 0:
			return "", s.errorf("a tag is expected here")
		default:
			return text.String(), nil
		}
	}
}

func (s *scanner) uriEscapes() (string, error) {
	start := s.mark
	var text []byte
	for s.at(0) == '%' {
		s.skip(1)
		code, err := s.hexadecimal(2)
		if err != nil {
			return "", err
		}
		text = append(text, byte(code))
	}
	if !utf8.Valid(text) {
		return "", start.errorf("the %%xx of a tag must be UTF-8")
	}
	return string(text), nil
}

// hexadecimal scans n digits.
func (s *scanner) hexadecimal(n int) (uint32, error) {
	var code uint32
	for range n {
		digit := strings.IndexRune("0123456789abcdef", s.at(0)|0x20)
		if digit < 0 || s.at(0) < '0' {
			return 0, s.errorf("%d hexadecimal digits are expected here", n)
		}
		code = code<<4 | uint32(digit)
		s.skip(1)
	}
	return code, nil
}

// directive scans a line that begins with '%'.
func (s *scanner) directive() (token, error) {
	t := token{kind: directive, mark: s.mark}
	s.skip(1)
	t.text = s.word()
	if t.text == "" || !isSpaceOrEnd(s.at(0)) {
		return t, s.errorf("a directive must have a name of letters and digits")
	}
	var err error
	switch t.text {
	case "YAML":
		err = s.version()
	case "TAG":
		t.handle, t.text, err = s.tagPrefix()
	default:
		for !isBreakOrEnd(s.at(0)) {
			s.skip(1)
		}
	}
	if err != nil {
		return t, err
	}
	return t, s.restOfLine()
}

// version scans the 1.1 of %YAML.
func (s *scanner) version() error {
	s.skipSpaces()
	major, minor, dotted := strings.Cut(s.digits(), ".")
	if strings.TrimLeft(major, "0") != "1" || !dotted || minor == "" || strings.Contains(minor, ".") || !isSpaceOrEnd(s.at(0)) {
		return s.errorf("%%YAML must be followed by a version 1.x")
	}
	return nil
}

func (s *scanner) digits() string {
	n := 0
	for r := s.at(0); '0' <= r && r <= '9' || r == '.'; r = s.at(n) {
		n++
	}
	return s.take(n)
}

// tagPrefix scans the handle and the prefix of %TAG.
func (s *scanner) tagPrefix() (handle, prefix string, err error) {
	s.skipSpaces()
	if handle, err = s.tagHandle(); err != nil {
		return "", "", err
	}
	if s.at(0) != ' ' {
		return "", "", s.errorf("a tag's handle must be followed by a space")
	}
	s.skipSpaces()
	if prefix, err = s.uri(); err != nil {
		return "", "", err
	}
	if !isSpaceOrEnd(s.at(0)) {
		return "", "", s.errorf("a tag's prefix must be followed by the end of the line")
	}
	return handle, prefix, nil
}

// restOfLine goes over what may follow on a line that is complete.
func (s *scanner) restOfLine() error {
	s.skipSpaces()
	s.skipComment()
	if !isBreakOrEnd(s.at(0)) {
		return s.errorf("a comment or the end of the line is expected here")
	}
	s.lineBreak()
	return nil
}
