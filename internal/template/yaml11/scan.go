package yaml11

import (
	"slices"
	"strings"
)

// maxSimpleKey is how many characters a key may have that is not marked with '?'. YAML 1.1: "limited to
// a single line and … at most 1024 Unicode characters".
const maxSimpleKey = 1024

// simpleKey is a place that turns out to be the beginning of a key if a ':' follows.
type simpleKey struct {
	possible bool
	required bool // nothing but a key can stand here
	token    int  // the number of the token, counted from the first of the text
	mark     mark
}

// scanner splits a text into tokens. It follows PyYAML's rules, not those of the specification: tabs
// separate nothing but comments and line ends, and indentation counts only in block context.
type scanner struct {
	text []rune // the last is end
	mark

	tokens []token // scanned, not taken yet
	taken  int
	done   bool

	flow    int // how many '[' and '{' are open
	indent  int
	indents []int

	keyAllowed bool
	keys       []simpleKey // by flow level
}

func newScanner(text string) *scanner {
	return &scanner{text: append([]rune(text), end), indent: -1, keyAllowed: true, keys: make([]simpleKey, 1)}
}

func (s *scanner) at(offset int) rune {
	if i := s.index + offset; i < len(s.text) {
		return s.text[i]
	}
	return end
}

// take goes n characters on, and returns them.
func (s *scanner) take(n int) string {
	start := s.index
	s.skip(n)
	return string(s.text[start:s.index])
}

func (s *scanner) skip(n int) {
	for ; n > 0; n-- {
		r := s.text[s.index]
		s.index++
		switch {
		case isBreak(r) && (r != '\r' || s.at(0) != '\n'):
			s.line++
			s.column = 0
		case r != '\ufeff':
			s.column++
		}
	}
}

func (s *scanner) skipSpaces() {
	for s.at(0) == ' ' {
		s.skip(1)
	}
}

func (s *scanner) skipComment() {
	if s.at(0) != '#' {
		return
	}
	for !isBreakOrEnd(s.at(0)) {
		s.skip(1)
	}
}

// lineBreak goes over a line break and returns what it stands for, or "" if there is none.
func (s *scanner) lineBreak() string {
	switch r := s.at(0); r {
	case '\r', '\n', '\u0085':
		if r == '\r' && s.at(1) == '\n' {
			s.skip(1)
		}
		s.skip(1)
		return "\n"
	case '\u2028', '\u2029':
		s.skip(1)
		return string(r)
	default:
		return ""
	}
}

// separator reports whether a line's beginning is '---' or '...'.
func (s *scanner) separator() bool {
	r := s.at(0)
	return (r == '-' || r == '.') && s.at(1) == r && s.at(2) == r && isBlankOrEnd(s.at(3))
}

// peek returns the next token.
func (s *scanner) peek() (token, error) {
	for s.needsMore() {
		if err := s.fetch(); err != nil {
			return token{}, err
		}
	}
	return s.tokens[0], nil
}

// next returns the next token and goes on to the one after it.
func (s *scanner) next() (token, error) {
	t, err := s.peek()
	if err != nil || t.kind == streamEnd {
		return t, err
	}
	s.tokens = s.tokens[1:]
	s.taken++
	return t, nil
}

// needsMore reports whether the next token is unknown: none is scanned, or a key may have to go before it.
func (s *scanner) needsMore() bool {
	if s.done {
		return false
	}
	if len(s.tokens) == 0 {
		return true
	}
	return slices.ContainsFunc(s.keys, func(k simpleKey) bool { return k.token == s.taken && s.isFresh(k) })
}

func (s *scanner) isFresh(k simpleKey) bool {
	return k.possible && k.mark.line == s.line && s.index-k.mark.index <= maxSimpleKey
}

// dropStale forgets keys that are too far back for a ':' that follows now.
func (s *scanner) dropStale() error {
	for level, k := range s.keys {
		if !k.possible || s.isFresh(k) {
			continue
		}
		if err := s.dropKey(level); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) dropKey(level int) error {
	k := s.keys[level]
	s.keys[level] = simpleKey{}
	if k.possible && k.required {
		return k.mark.errorf("there is no ':' after this key")
	}
	return nil
}

// saveKey remembers that the token to come may be a key.
func (s *scanner) saveKey() error {
	if !s.keyAllowed {
		return nil
	}
	if err := s.dropKey(s.flow); err != nil {
		return err
	}
	s.keys[s.flow] = simpleKey{
		possible: true,
		required: s.flow == 0 && s.indent == s.column,
		token:    s.taken + len(s.tokens),
		mark:     s.mark,
	}
	return nil
}

func (s *scanner) add(k kind, m mark) {
	s.tokens = append(s.tokens, token{kind: k, mark: m})
}

// addIndent goes to a deeper indentation, which begins a block collection of the kind, whose tokens
// begin at position.
func (s *scanner) addIndent(column int, k kind, m mark, position int) {
	if s.indent >= column {
		return
	}
	s.indents = append(s.indents, s.indent)
	s.indent = column
	s.tokens = slices.Insert(s.tokens, position, token{kind: k, mark: m})
}

// unwind ends the block collections that are deeper than column.
func (s *scanner) unwind(column int) {
	if s.flow > 0 {
		return
	}
	for s.indent > column {
		s.indent = s.indents[len(s.indents)-1]
		s.indents = s.indents[:len(s.indents)-1]
		s.add(blockEnd, s.mark)
	}
}

// toNextToken goes over spaces, comments and line breaks.
func (s *scanner) toNextToken() {
	if s.index == 0 && s.at(0) == '\ufeff' {
		s.skip(1)
	}
	for {
		s.skipSpaces()
		s.skipComment()
		if s.lineBreak() == "" {
			return
		}
		if s.flow == 0 {
			s.keyAllowed = true
		}
	}
}

// fetch scans at least one token.
func (s *scanner) fetch() error {
	s.toNextToken()
	if err := s.dropStale(); err != nil {
		return err
	}
	s.unwind(s.column)
	r := s.at(0)
	fetch, found := fetchers[r]
	switch {
	case r == end:
		return s.fetchEnd()
	case s.column == 0 && r == '%':
		return s.fetchDirective()
	case s.column == 0 && s.separator():
		return s.fetchSeparator(r)
	case found:
		return fetch(s)
	case s.isIndicator(r):
		return s.fetchIndicator(r)
	case s.isPlain(r):
		return s.fetchWord((*scanner).plainScalar)
	default:
		return s.errorf("no value can begin with this character%s", hint(r))
	}
}

// hint says what to do about a character that begins no token.
func hint(r rune) string {
	switch r {
	case '\t':
		return ", a tab: use spaces"
	case '%', '@', '`':
		return ": quote the text, for example with |tojson"
	default:
		return ""
	}
}

// fetchers scan what one character announces.
var fetchers = map[rune]func(*scanner) error{
	'[':  func(s *scanner) error { return s.fetchFlowStart(flowSequenceStart) },
	'{':  func(s *scanner) error { return s.fetchFlowStart(flowMappingStart) },
	']':  func(s *scanner) error { return s.fetchFlowEnd(flowSequenceEnd) },
	'}':  func(s *scanner) error { return s.fetchFlowEnd(flowMappingEnd) },
	',':  (*scanner).fetchFlowEntry,
	'*':  func(s *scanner) error { return s.fetchWord((*scanner).anchorOrAlias) },
	'&':  func(s *scanner) error { return s.fetchWord((*scanner).anchorOrAlias) },
	'!':  func(s *scanner) error { return s.fetchWord((*scanner).tag) },
	'\'': func(s *scanner) error { return s.fetchWord((*scanner).quotedScalar) },
	'"':  func(s *scanner) error { return s.fetchWord((*scanner).quotedScalar) },
	'|':  (*scanner).fetchBlockScalar,
	'>':  (*scanner).fetchBlockScalar,
}

// isIndicator reports whether a '-', '?' or ':' is more than a character of a plain scalar.
func (s *scanner) isIndicator(r rune) bool {
	switch r {
	case '?', ':':
		return s.flow > 0 || isBlankOrEnd(s.at(1))
	default:
		return r == '-' && isBlankOrEnd(s.at(1))
	}
}

func (s *scanner) isPlain(r rune) bool {
	switch {
	case isBlankOrEnd(r):
		return false
	case r == '-', s.flow == 0 && (r == '?' || r == ':'):
		return !isBlankOrEnd(s.at(1))
	default:
		return !strings.ContainsRune("?:,[]{}#&*!|>'\"%@`", r)
	}
}
