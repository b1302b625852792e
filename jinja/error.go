package jinja

import (
	"errors"
	"fmt"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

// Error says what is wrong with a template, and where. It never contains the template's source, or a value.
type Error struct {
	// Kind is the sort of mistake.
	Kind py.Kind
	// Line and Column count from one, columns in code points.
	Line, Column int
	// Message says what is wrong and what was expected.
	Message string
	// Err is the error of a filter or function of the program, if that is the reason.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Unwrap returns the error of a filter or function of the program, if that is the reason.
func (e *Error) Unwrap() error { return e.Err }

// syntaxError is an error that is found before anything is rendered.
func syntaxError(pos syntax.Pos, format string, args ...any) error {
	return &Error{Kind: py.Syntax, Line: pos.Line, Column: pos.Column, Message: fmt.Sprintf(format, args...)}
}

// at adds the position to err, unless it has one; err may be nil.
func at(pos syntax.Pos, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	located := &Error{Kind: py.Other, Line: pos.Line, Column: pos.Column, Message: err.Error(), Err: err}
	if raised, ok := errors.AsType[*py.Error](err); ok {
		located.Kind = raised.Kind
	}
	if wrong, ok := errors.AsType[*syntax.Error](err); ok {
		located.Kind, located.Line, located.Column = py.Syntax, wrong.Line, wrong.Column
	}
	return located
}
