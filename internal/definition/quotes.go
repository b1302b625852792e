package definition

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// place is a position in the text of a template.
type place struct{ line, column int }

// quotedWords returns the positions at which {{ …|tobash }} is inside shell quotes. It understands only as much of
// the shell's syntax as this takes, and reports nothing if it is not sure.
func quotedWords(source string) []place {
	if strings.Contains(source, "endraw") {
		return nil
	}
	r := &reader{source: source, line: 1, column: 1, context: []byte{0}}
	for r.rest() != "" {
		r.step()
	}
	return r.found
}

// reader reads shell commands that contain templates.
type reader struct {
	source       string
	at           int
	line, column int

	// context is what surrounds the position: quotes ' or ", a substitution (, or 0 for nothing; the innermost is last.
	context []byte

	// documents are the end words of the here-documents that begin with the next line.
	documents []string

	found []place
}

func (r *reader) rest() string { return r.source[r.at:] }

// skip advances by n bytes.
func (r *reader) skip(n int) {
	for ; n > 0 && r.at < len(r.source); n-- {
		switch c := r.source[r.at]; {
		case c == '\n':
			r.line, r.column = r.line+1, 1
		case utf8.RuneStart(c):
			r.column++
		}
		r.at++
	}
}

func (r *reader) inner() byte { return r.context[len(r.context)-1] }

func (r *reader) push(c byte) {
	const deepest = 50
	if len(r.context) < deepest {
		r.context = append(r.context, c)
	}
}

func (r *reader) pop() {
	if len(r.context) > 1 {
		r.context = r.context[:len(r.context)-1]
	}
}

func (r *reader) step() {
	rest := r.rest()
	switch {
	case strings.HasPrefix(rest, "{{"):
		r.expression()
	case strings.HasPrefix(rest, "{%"):
		r.skip(lengthTo(rest, "%}"))
	case strings.HasPrefix(rest, "{#"):
		r.skip(lengthTo(rest, "#}"))
	case r.inner() == '\'':
		if rest[0] == '\'' {
			r.pop()
		}
		r.skip(1)
	case rest[0] == '\\':
		r.skip(2)
	default:
		r.command(rest)
	}
}

// command reads text outside single quotes.
func (r *reader) command(rest string) {
	switch quoted := r.inner() == '"'; {
	case rest[0] == '"' && quoted:
		r.pop()
	case rest[0] == '"':
		r.push('"')
	case strings.HasPrefix(rest, "$("):
		r.push('(')
		r.skip(1)
	case !quoted:
		r.unquoted(rest)
		return
	}
	r.skip(1)
}

// unquoted reads text outside all quotes.
func (r *reader) unquoted(rest string) {
	switch rest[0] {
	case '\'':
		r.push('\'')
	case '(':
		r.push('(')
	case ')':
		if r.inner() == '(' {
			r.pop()
		}
	case '#':
		if r.at == 0 || strings.IndexByte(" \t\n;(", r.source[r.at-1]) >= 0 {
			comment, _, _ := strings.Cut(rest, "\n")
			r.skip(len(comment))
			return
		}
	case '<':
		r.redirection(rest)
	}
	r.skip(1)
	if rest[0] == '\n' {
		r.skipDocuments()
	}
}

var (
	documentStart = regexp.MustCompile(`^<<-?[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([A-Za-z_][A-Za-z0-9_]*))`)
	lastIsToBash  = regexp.MustCompile(`\|\s*tobash\s*(?:\(\s*\))?[\s)]*-?\}\}$`)
)

// redirection notes a here-document, which begins with the next line.
func (r *reader) redirection(rest string) {
	if strings.HasPrefix(rest, "<<<") {
		r.skip(2)
	} else if match := documentStart.FindStringSubmatch(rest); match != nil {
		r.documents = append(r.documents, match[1]+match[2]+match[3])
		r.skip(len(match[0]) - 1)
	}
}

// skipDocuments skips the here-documents that begin here: their text has no quotes.
func (r *reader) skipDocuments() {
	for len(r.documents) > 0 && r.rest() != "" {
		line := r.rest()[:lengthTo(r.rest(), "\n")]
		if strings.TrimSpace(line) == r.documents[0] {
			r.documents = r.documents[1:]
		}
		r.skip(len(line))
	}
	r.documents = nil
}

func (r *reader) expression() {
	length := expressionLength(r.rest())
	if r.inner() != 0 && r.inner() != '(' && lastIsToBash.MatchString(r.rest()[:length]) {
		r.found = append(r.found, place{r.line, r.column})
	}
	r.skip(length)
}

// expressionLength returns the length of the {{ … }} at the beginning of the text: strings in it may contain }}.
func expressionLength(text string) int {
	quote := byte(0)
	for i := 2; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case strings.HasPrefix(text[i:], "}}"):
			return i + 2
		}
	}
	return len(text)
}

// lengthTo returns the length of the text up to and including an end; the whole length if the end does not occur.
func lengthTo(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}
