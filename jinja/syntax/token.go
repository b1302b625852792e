package syntax

import (
	"fmt"

	"github.com/albertofaria/pav/jinja/py"
)

// Pos is a position in the source: line and column count from one, columns in code points.
type Pos struct{ Line, Column int }

// Position returns p; nodes of the tree embed their Pos.
func (p Pos) Position() Pos { return p }

// Error is an error in the source.
type Error struct {
	Pos
	Message string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func errorAt(pos Pos, format string, args ...any) error {
	return &Error{Pos: pos, Message: fmt.Sprintf(format, args...)}
}

// kind is the kind of a token. Each operator is a kind of its own: "+", "==", "(".
type kind string

const (
	kindEOF           kind = "end of template"
	kindData          kind = "template data"
	kindVariableBegin kind = "{{"
	kindVariableEnd   kind = "}}"
	kindBlockBegin    kind = "{%"
	kindBlockEnd      kind = "%}"
	kindName          kind = "name"
	kindString        kind = "string"
	kindInteger       kind = "integer"
	kindFloat         kind = "float"
)

// token is one piece of the source. Text is that of data, of a name or an operator; value that of a literal.
type token struct {
	Pos
	kind  kind
	text  string
	value py.Value
}

// is reports whether t is the keyword or name.
func (t *token) is(name string) bool { return t.kind == kindName && t.text == name }

// describe names t in an error. It never quotes literals or data, which may be secret.
func (t *token) describe() string {
	if t.kind == kindName {
		return t.text
	}
	return string(t.kind)
}

// operators, longest first: the first match counts.
var operators = []string{
	"//", "**", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";",
}
