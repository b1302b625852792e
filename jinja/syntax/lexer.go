package syntax

import (
	"strings"
	"unicode/utf8"
)

// lexer turns source into tokens. Source has only "\n" as newlines.
type lexer struct {
	source string
	// offset is where the next token begins, at pos.
	offset int
	pos    Pos
	tokens []token
	// closing are the brackets that are open, innermost last: inside them, delimiters are operators.
	closing []byte
	// lineStarting says that the last token ended a line.
	lineStarting bool
}

// lex returns the tokens of source, without the end token.
func lex(source string) ([]token, error) {
	l := &lexer{source: normalize(source), pos: Pos{1, 1}, lineStarting: true}
	l.tokens = make([]token, 0, len(source)/8+4)
	for l.offset < len(l.source) {
		if err := l.root(); err != nil {
			return nil, err
		}
	}
	l.emit(kindEOF, "")
	return l.tokens, nil
}

// normalize makes every newline "\n", and removes one at the end.
func normalize(source string) string {
	if strings.Contains(source, "\r") {
		source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	}
	return strings.TrimSuffix(source, "\n")
}

func (l *lexer) rest() string { return l.source[l.offset:] }

// advance moves n bytes forward.
func (l *lexer) advance(n int) {
	if n == 0 {
		return
	}
	passed := l.source[l.offset : l.offset+n]
	l.offset += n
	if lines := strings.Count(passed, "\n"); lines > 0 {
		l.pos.Line += lines
		l.pos.Column = 1
		l.pos.Column += utf8.RuneCountInString(passed[strings.LastIndexByte(passed, '\n')+1:])
	} else {
		l.pos.Column += utf8.RuneCountInString(passed)
	}
	l.lineStarting = passed[n-1] == '\n'
}

func (l *lexer) emit(k kind, text string) {
	l.tokens = append(l.tokens, token{Pos: l.pos, kind: k, text: text})
}

// tag is a delimiter in data.
type tag struct {
	// at is its offset, size its length with its sign.
	at, size int
	// sign is '-', '+' or 0: what happens to whitespace before it.
	sign byte
	kind byte // '{' for print, '%' for statements, '#' for comments
	raw  bool
}

// root reads data and the tag that follows it.
func (l *lexer) root() error {
	text := l.rest()
	found, ok := findTag(text)
	if !ok {
		l.emit(kindData, text)
		l.advance(len(text))
		return nil
	}
	if data := l.strip(text[:found.at], found); data != "" {
		l.emit(kindData, data)
	}
	l.advance(found.at)
	begin := l.pos
	l.advance(found.size)
	switch {
	case found.raw:
		return l.raw(begin)
	case found.kind == '#':
		return l.comment(begin)
	case found.kind == '%':
		l.tokens = append(l.tokens, token{Pos: begin, kind: kindBlockBegin})
		return l.inTag(kindBlockEnd)
	default:
		l.tokens = append(l.tokens, token{Pos: begin, kind: kindVariableBegin})
		return l.inTag(kindVariableEnd)
	}
}

// findTag returns the first delimiter in text.
func findTag(text string) (tag, bool) {
	for i := 0; i+1 < len(text); i++ {
		next := strings.IndexByte(text[i:], '{')
		if next < 0 || i+next+1 >= len(text) {
			return tag{}, false
		}
		i += next
		switch opened := text[i+1]; opened {
		case '{', '%', '#':
			found := tag{at: i, size: 2, kind: opened}
			if found.sign = signAt(text, i+2); found.sign != 0 {
				found.size++
			}
			if size := rawBegin(text[i+found.size:]); opened == '%' && size > 0 {
				found.size += size
				found.raw = true
			}
			return found, true
		}
	}
	return tag{}, false
}

func signAt(text string, i int) byte {
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		return text[i]
	}
	return 0
}

// rawBegin returns the length of the rest of a raw tag at the beginning of text, or zero.
func rawBegin(text string) int {
	rest := trimLeft(text)
	if !strings.HasPrefix(rest, "raw") {
		return 0
	}
	rest = trimLeft(rest[len("raw"):])
	switch {
	case strings.HasPrefix(rest, "-%}"):
		rest = trimLeft(rest[len("-%}"):])
	case strings.HasPrefix(rest, "%}"):
		rest = rest[len("%}"):]
	default:
		return 0
	}
	return len(text) - len(rest)
}

// strip removes the part of the data before a tag that its sign, or lstrip_blocks, removes.
func (l *lexer) strip(data string, before tag) string {
	if before.sign == '-' {
		return trimRight(data)
	}
	if before.sign == '+' || before.kind == '{' {
		return data
	}
	line := strings.LastIndexByte(data, '\n') + 1
	if (line > 0 || l.lineStarting) && trimLeft(data[line:]) == "" {
		return data[:line]
	}
	return data
}

// comment skips a comment, whose beginning has been read.
func (l *lexer) comment(begin Pos) error {
	text := l.rest()
	if text == "" {
		return nil // Jinja takes a comment for closed that begins where the template ends.
	}
	end := strings.Index(text, "#}")
	if end < 0 {
		return errorAt(begin, "the comment is not closed: expected '#}'")
	}
	size := end + len("#}")
	switch {
	case end > 0 && text[end-1] == '-':
		size += len(text[size:]) - len(trimLeft(text[size:]))
	case end > 0 && text[end-1] == '+':
	case strings.HasPrefix(text[size:], "\n"):
		size++
	}
	l.advance(size)
	return nil
}

// raw emits the text between raw and endraw; the tag raw has been read.
func (l *lexer) raw(begin Pos) error {
	text := l.rest()
	if text == "" {
		return nil // as for comments
	}
	for i := 0; ; {
		next := strings.Index(text[i:], "{%")
		if next < 0 {
			return errorAt(begin, "the raw block is not closed: expected {%% endraw %%}")
		}
		i += next
		found := tag{at: i, size: 2, kind: '%', sign: signAt(text, i+2)}
		if found.sign != 0 {
			found.size++
		}
		size := rawEnd(text[i+found.size:])
		if size == 0 {
			i++
			continue
		}
		if data := l.strip(text[:i], found); data != "" {
			l.emit(kindData, data)
		}
		l.advance(i + found.size + size)
		return nil
	}
}

// rawEnd returns the length of the rest of an endraw tag at the beginning of text, or zero.
func rawEnd(text string) int {
	rest := trimLeft(text)
	if !strings.HasPrefix(rest, "endraw") {
		return 0
	}
	rest = trimLeft(rest[len("endraw"):])
	size := blockEnd(rest)
	if size == 0 {
		return 0
	}
	return len(text) - len(rest) + size
}

// blockEnd returns the length of the end of a statement block at the beginning of text, with the
// whitespace that it removes, or zero.
func blockEnd(text string) int {
	switch {
	case strings.HasPrefix(text, "+%}"):
		return len("+%}")
	case strings.HasPrefix(text, "-%}"):
		rest := trimLeft(text[len("-%}"):])
		return len(text) - len(rest)
	case strings.HasPrefix(text, "%}\n"):
		return len("%}\n")
	case strings.HasPrefix(text, "%}"):
		return len("%}")
	}
	return 0
}

// variableEnd is blockEnd for print statements.
func variableEnd(text string) int {
	switch {
	case strings.HasPrefix(text, "-}}"):
		rest := trimLeft(text[len("-}}"):])
		return len(text) - len(rest)
	case strings.HasPrefix(text, "}}"):
		return len("}}")
	}
	return 0
}
