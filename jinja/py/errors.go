package py

import "fmt"

// Kind is the kind of an Error.
type Kind int

// The kinds of Error. Other is any exception of Python that has no kind of its own here.
const (
	Other Kind = iota
	Syntax
	UndefinedUse
	Type
	Security
	Limit
)

// Error is an exception of Python. Exception is its name (ValueError). Message never quotes a whole value, which may be
// secret or large.
type Error struct {
	Kind      Kind
	Exception string
	Message   string
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func typeError(format string, args ...any) error {
	return &Error{Kind: Type, Exception: "TypeError", Message: fmt.Sprintf(format, args...)}
}

func valueError(format string, args ...any) error { return exception("ValueError", format, args...) }

func exception(name, format string, args ...any) error {
	return &Error{Kind: Other, Exception: name, Message: fmt.Sprintf(format, args...)}
}
