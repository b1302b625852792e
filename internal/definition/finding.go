package definition

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity is how serious a finding is for the definition.
type Severity string

// The severities.
const (
	// Error means that the definition, or a part of it, can never work.
	Error Severity = "error"

	// Warning means that the definition is valid, but probably a mistake, or dangerous.
	Warning Severity = "warning"
)

// Finding is an error or a warning about a definition.
type Finding struct {
	Severity Severity

	// Field is the path from the root of the object, as in spec.volumeStaging.podTemplate.spec.containers[0].image;
	// keys that contain any of . / [ ] are in brackets. A missing field has the path that it would have.
	Field string

	// Line and Column are the position in the text of the field's template. They count from 1, columns in code
	// points. They are 0 if the finding is about the field as a whole.
	Line, Column int

	// Key means that the finding is about the field's key and not about its value: for example, the key is unknown.
	Key bool

	// Late means that the check ran out of time, because the definition is large or the machine is busy. Another
	// check may find more. Such a finding is a warning.
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

// Late reports whether the check of a definition ran out of time.
func Late(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Late })
}

// order sorts findings by field, then by position in the field, errors first, and removes duplicates.
func order(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			compareFields(a.Field, b.Field), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.Compact(findings)
}

// compareFields compares paths, and the numbers in them as numbers: the tenth container comes after the second.
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
