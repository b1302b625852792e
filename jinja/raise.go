package jinja

import (
	"errors"
	"fmt"
	"slices"

	"github.com/albertofaria/pav/jinja/py"
)

// raisef returns the error of an exception of Python. A TypeError is a kind of its own.
func raisef(exception, format string, args ...any) error {
	kind := py.Other
	if exception == "TypeError" {
		kind = py.Type
	}
	return &py.Error{Kind: kind, Exception: exception, Message: fmt.Sprintf(format, args...)}
}

// raised reports whether err is one of the exceptions.
func raised(err error, exceptions ...string) bool {
	var e *py.Error
	return errors.As(err, &e) && slices.Contains(exceptions, e.Exception)
}

// isBadValue reports whether err is the error of a value that cannot be converted.
func isBadValue(err error) bool {
	return raised(err, "TypeError", "ValueError", "UnicodeDecodeError", "UnicodeEncodeError")
}
