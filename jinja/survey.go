package jinja

import (
	"cmp"
	"errors"
	"slices"

	"github.com/albertofaria/pav/jinja/syntax"
)

// Question says what a survey has to find out about a template.
type Question struct {
	// Names are the variables that a render has.
	Names map[string]bool
	// Objects are the variables for which the survey reports which attributes are read and printed.
	Objects map[string]bool
	// Functions are variables whose calls return such an object. Its root is the name with "()".
	Functions map[string]bool
	// Words are the filters that turn any text into one word of a shell.
	Words map[string]bool
	// Booleans are variables that the program reads after a render, and that must be true or false if
	// the template sets them outside of inner scopes.
	Booleans map[string]bool
}

// Survey is what can be known about a template without rendering it.
type Survey struct {
	// Problems are errors: syntax errors; filters and tests that do not exist, and statements that need other templates,
	// which Jinja reports only when a render reaches them; and Booleans that are set to other values.
	Problems []*Error
	// Unknown are the places that read a name to which neither the render nor the template assigns a value.
	Unknown []Unknown
	// Reads are the places that read a variable of the render.
	Reads []Read
	// Sets are the variables that the template may set outside of loops, macros and other inner scopes, to anything but
	// false.
	Sets map[string]bool
	// Paths are the chains of attributes that are read of objects.
	Paths []Path
	// Flows are the parts of objects that reach the output as text.
	Flows []Flow
}

// Unknown is a place that reads a name without a value.
type Unknown struct {
	syntax.Pos
	Name string
	// Harmless says that a render does not fail there, or may never get there: the template tests whether the name is
	// defined, or gives it a default, or only passes it on; or the place is in a macro, or depends on what is defined.
	Harmless bool
	// Conditional says that an object, or a name that may be unknown, decides whether a render gets there.
	Conditional bool
	// Expected says that the name has a default, or that the template tests whether it, or what the place depends on, is
	// defined: the template is written for several kinds of renders.
	Expected bool
	// Hint is empty, or text to add to a message: the most similar known name.
	Hint string
}

// Read is a place that reads a variable of the render.
type Read struct {
	syntax.Pos
	Name string
	// Assigned says that the template assigns to the name, too, so that the value there may be its own.
	Assigned bool
}

// Path is a chain of attributes of an object. It ends where it becomes dynamic.
type Path struct {
	syntax.Pos
	Root string
	Keys []string
	// Guarded says that a render does not fail if the last of Keys is missing.
	Guarded bool
	// Tested is how many of Keys the template tests somewhere, or gives a default: they may be missing.
	Tested int
}

// Flow is a part of an object that reaches the output. Pos is the place that reads it or, if that is in another statement,
// the place that prints it.
type Flow struct {
	syntax.Pos
	Root string
	Keys []string
	// Word says that a filter of Question.Words was applied last.
	Word bool
}

// Survey returns what can be known about source without rendering it.
func (env *Environment) Survey(source string, question Question) *Survey {
	n := newNotes()
	tree, err := env.parse(source)
	if err == nil {
		_, err = env.compile(tree, env.Compiler().folding, n)
	}
	surveyed := &Survey{Problems: n.problems}
	if wrong, ok := errors.AsType[*Error](err); ok {
		surveyed.Problems = append(surveyed.Problems, wrong)
	}
	slices.SortStableFunc(surveyed.Problems, func(a, b *Error) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	if err != nil {
		return surveyed
	}
	surveyed.Sets = setsOutside(tree.Body)
	surveyed.Problems = append(surveyed.Problems, question.noBooleans(tree.Body)...)
	absent := lookForAbsence(tree.Body, unknownReads(n, question), question)
	surveyed.Problems = slices.DeleteFunc(surveyed.Problems, func(e *Error) bool {
		return absent.optional[syntax.Pos{Line: e.Line, Column: e.Column}]
	})
	surveyed.Unknown = unknownNames(n, absent, question)
	surveyed.Reads = variableReads(n, question)
	surveyed.Paths, surveyed.Flows = trace(tree, n, absent, question)
	return surveyed
}
