package definition

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says what a finding means for the definition.
type Severity string

// The severities.
const (
	// Error means that the definition, or a part of it, can never do what it is for.
	Error Severity = "error"

	// Warning means that the definition is legal, but likely to be a mistake, or dangerous.
	Warning Severity = "warning"
)

// Finding is one thing that is to be said about a definition.
type Finding struct {
	Severity Severity

	// Field is the path from the root of the object, as in spec.volumeStaging.podTemplate.spec.containers[0].image;
	// keys with any of . / [ ] are in brackets. A field that is missing has the path that it would have.
	Field string

	// Line and Column, from 1, are within the text of the field's template, columns in code points; 0
	// where the finding is about the field as a whole.
	Line, Column int

	// Key means that the finding is about the field's key, as of one that is unknown, and not about its value.
	Key bool

	// Late means that this is no matter of the definition: there was no time to look at all of it, as its
	// size or the load of the machine has it, so that another check may find more. It is a warning.
	Late bool

	// Message says what is wrong and what to do.
	Message string
}

// String returns the finding in one line, without its severity.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.Field + ": " + f.Message
	}
	return fmt.Sprintf("%s: line %d, column %d: %s", f.Field, f.Line, f.Column, f.Message)
}

// Late reports whether there was no time to look at all of a definition.
func Late(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Late })
}

// order sorts findings by field, then by place in it, errors first, and leaves out those that are said twice.
func order(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			compareFields(a.Field, b.Field), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.Compact(findings)
}

// compareFields compares paths, and the numbers in them as such: the tenth container comes after the second.
func compareFields(a, b string) int {
	for a != "" && b != "" {
		digitsA, digitsB := leadingDigits(a), leadingDigits(b)
		if digitsA > 0 && digitsB > 0 {
			if by := cmp.Or(cmp.Compare(digitsA, digitsB), cmp.Compare(a[:digitsA], b[:digitsB])); by != 0 {
				return by
			}
			a, b = a[digitsA:], b[digitsB:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(text string) int {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}
