package jinja

import (
	"errors"
	"fmt"
	"slices"

	"github.com/albertofaria/pav/jinja/py"
)

// raisef is what Python would raise. A TypeError is a kind of its own.
func raisef(exception, format string, args ...any) error {
	kind := py.Other
	if exception == "TypeError" {
		kind = py.Type
	}
	return &py.Error{Kind: kind, Exception: exception, Message: fmt.Sprintf(format, args...)}
}

// raised tells whether err is one of the exceptions.
func raised(err error, exceptions ...string) bool {
	var e *py.Error
	return errors.As(err, &e) && slices.Contains(exceptions, e.Exception)
}

// isBadValue tells whether err is what Python raises for a value that cannot be converted.
func isBadValue(err error) bool {
	return raised(err, "TypeError", "ValueError", "UnicodeDecodeError", "UnicodeEncodeError")
}
