package jinja

import (
	"cmp"
	"errors"
	"slices"

	"github.com/albertofaria/pav/jinja/syntax"
)

// Question is what a host wants to know of a template.
type Question struct {
	// Names are the variables that a render has.
	Names map[string]bool
	// Objects are those of them whose attributes are of interest, and where they go.
	Objects map[string]bool
	// Functions are variables that return such an object when they are called. Its root is the name with "()".
	Functions map[string]bool
	// Words are the filters that make any text one word of a shell.
	Words map[string]bool
	// Booleans are variables that a host reads when a template has been rendered, and that must be true or false if
	// the template sets them outside of inner scopes.
	Booleans map[string]bool
}

// Survey is what can be known of a template without rendering it.
type Survey struct {
	// Problems are mistakes: what makes the source no template; and filters and tests that do not exist and statements that
	// need other templates, which Jinja only reports when, and if, a render meets them; and Booleans that are set to
	// something else.
	Problems []*Error
	// Unknown are the places where a name is read that neither the render nor the template gives a value.
	Unknown []Unknown
	// Sets are the variables that the template may set outside of loops, macros and other inner scopes, to anything but false.
	Sets map[string]bool
	// Paths are the chains of attributes that are read of objects.
	Paths []Path
	// Flows are the parts of objects that reach the output as text.
	Flows []Flow
}

// Unknown is a place where a name is read that has no value.
type Unknown struct {
	syntax.Pos
	Name string
	// Harmless says that a render does not fail of it, or may never meet it: its absence is asked for, or it has a
	// default, it is only passed on, or it is in a macro, or where it depends on what is defined.
	Harmless bool
	// Conditional says that it depends on an object, or on a name that may not be known, whether a render gets there.
	Conditional bool
	// Expected says that the name has a default, or that the template asks whether it, or what its reading depends on, is
	// defined: it is written for several kinds of renders.
	Expected bool
	// Hint is empty, or what to add to a message: the nearest name that is known.
	Hint string
}

// Path is a chain of attributes of an object. It ends where it becomes dynamic.
type Path struct {
	syntax.Pos
	Root string
	Keys []string
	// Guarded says that the last of Keys may be missing without a failure.
	Guarded bool
	// Tested is how many of Keys the template asks for somewhere, or gives a default: they may be missing.
	Tested int
}

// Flow is a part of an object that reaches the output. Pos is where it is read, or, if that was in another statement,
// where it is printed.
type Flow struct {
	syntax.Pos
	Root string
	Keys []string
	// Word says that a filter that makes a word was the last thing that happened to it.
	Word bool
}

// Survey says what can be known of source without rendering it.
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
	surveyed.Paths, surveyed.Flows = trace(tree, n, absent, question)
	return surveyed
}
