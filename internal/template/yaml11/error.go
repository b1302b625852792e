package yaml11

import "fmt"

// Error says where a text is not what it must be. It quotes nothing of the text, which may be secret.
type Error struct {
	// Line and Column count from 1; Column counts characters.
	Line, Column int

	// Message says what is wrong.
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// mark is a place in a text; all count from 0.
type mark struct{ index, line, column int }

func (m mark) errorf(format string, args ...any) error {
	return &Error{Line: m.line + 1, Column: m.column + 1, Message: fmt.Sprintf(format, args...)}
}
