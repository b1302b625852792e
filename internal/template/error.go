package template

import (
	"errors"
	"fmt"
)

// Error says which field of a definition cannot be evaluated, and why.
type Error struct {
	// Field is the path of the field, from spec on.
	Field string

	// Err is the reason. It never contains the template's source, or a value.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// maxErrors is how many mistakes of a field are reported at once.
const maxErrors = 10

// join returns one error for several mistakes, with the first of them in full.
func join(mistakes []error) error {
	if more := len(mistakes) - maxErrors; more > 0 {
		mistakes = append(mistakes[:maxErrors:maxErrors], fmt.Errorf("and %d more mistakes", more))
	}
	return errors.Join(mistakes...)
}
