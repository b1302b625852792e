package template

import (
	"cmp"
	"slices"
	"strings"

	"github.com/albertofaria/pav/jinja"
)

// Analysis is the result of the static analysis of a template. Lines and columns are those of the template's text,
// from one.
type Analysis struct {
	// Plain says that nothing in it is evaluated: its value is its text, without one line break at its end.
	Plain bool

	// YAML says that it may set yaml, so that its value may be of any type.
	YAML bool

	// Errors are mistakes with which a render fails, or that cannot be intended: a syntax error, unknown filters and
	// tests, statements that need other templates, undefined names, and a value of yaml that is not a boolean.
	Errors []*jinja.Error

	// Warnings are names that nothing gives a value where that does not make a render fail, or a render may never get
	// to: x|default('…'), {% if x %}, [x], in macros, and where it depends on what is defined. There are none of
	// names of
	// other sections that the template expects to be missing, so that sections can share a text.
	Warnings []*jinja.Error

	// Paths are what is read of variables that are Kubernetes objects or of TypeSource, and of the claims that get_pvc returns.
	Paths []Path

	// Reads are the places that read a variable.
	Reads []Read

	// Flows are the values chosen by tenants that reach the output.
	Flows []Flow
}

// Read is a place that reads a variable.
type Read struct {
	Name         string
	Line, Column int

	// Assigned says that the template assigns to the name, too, so that the value there may be its own.
	Assigned bool
}

// Path is a chain of attributes of a Kubernetes object: pvc.metadata.labels.
type Path struct {
	// Root is the variable, or "get_pvc()", and Type its type.
	Root, Type string

	// Keys are the attributes and constant keys, up to the end of the chain or the first dynamic key.
	Keys []string

	// Line and Column are where the chain begins.
	Line, Column int

	// Guarded says that the last of Keys may be missing: x|default('…'), x is defined, x.get('key'), [x].
	Guarded bool

	// Tested is how many of Keys the template tests somewhere, or gives a default: any of them may be missing.
	Tested int
}

// Flow is a value chosen by a tenant that reaches the output.
type Flow struct {
	// Source is where the value comes from, such as "pvc.metadata.annotations"; Keys is the same without
	// the variable.
	Source string
	Keys   []string

	// Line and Column are where it is read, or, where that is in another statement, where it is printed.
	Line, Column int

	// Shell says that |tobash was the last filter, so that the value is part of one word of a shell.
	Shell bool

	// Safe says that Kubernetes allows no characters there that have a meaning in a shell.
	Safe bool
}

// Analyze analyzes a template of a section, such as "volumeCreation".
func (e *Evaluator) Analyze(section, source string) Analysis {
	return analyze(e.environment, newNames(section), source)
}

// analyze analyzes a template that is evaluated with names.
func analyze(environment *jinja.Environment, n *names, source string) Analysis {
	if !strings.Contains(source, "{{") && !strings.Contains(source, "{%") && !strings.Contains(source, "{#") {
		return Analysis{Plain: true}
	}
	survey := environment.Survey(source, n.question())
	a := Analysis{YAML: survey.Sets["yaml"], Errors: survey.Problems}
	a.unknown(survey.Unknown, n)
	slices.SortStableFunc(a.Errors, func(x, y *jinja.Error) int { return cmp.Or(x.Line-y.Line, x.Column-y.Column) })
	for _, read := range survey.Reads {
		a.Reads = append(a.Reads, Read{Name: read.Name, Line: read.Line, Column: read.Column, Assigned: read.Assigned})
	}
	for _, path := range survey.Paths {
		a.Paths = append(a.Paths, n.path(path))
	}
	for _, flow := range survey.Flows {
		if n.chosenByTenant(flow.Root) {
			a.Flows = append(a.Flows, n.flow(flow))
		}
	}
	return a
}

// unknown adds the errors and warnings about undefined names.
func (a *Analysis) unknown(all []jinja.Unknown, n *names) {
	for _, unknown := range all {
		elsewhere := len(sectionsWith(unknown.Name)) > 0
		switch {
		case unknown.Expected && elsewhere:
		case unknown.Harmless || unknown.Conditional && elsewhere:
			a.Warnings = append(a.Warnings, n.unknown(unknown))
		default:
			a.Errors = append(a.Errors, n.unknown(unknown))
		}
	}
}
