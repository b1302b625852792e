package render

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/lint"
	"github.com/albertofaria/pav/internal/kubectl/source"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/jinja"
)

// fieldOf matches a field at the beginning of an error.
var fieldOf = regexp.MustCompile(`^(spec(?:\.[^\s:.\[\]]+|\[[^\]]*\])*): `)

// at returns an error about a document, or about a field of it if the error begins with a field.
func at(d source.Document, err error) lint.Finding {
	found := definition.Finding{Severity: definition.Error, Message: err.Error()}
	if match := fieldOf.FindStringSubmatch(found.Message); match != nil {
		found.Field, found.Message = match[1], found.Message[len(match[0]):]
	}
	return lint.At(d, found)
}

// locate turns an agent's error into findings about the definition; nil if the error is not about the definition.
func locate(d source.Document, err error) []lint.Finding {
	var findings []lint.Finding
	for _, mistake := range mistakes(err) {
		found := definition.Finding{Severity: definition.Error, Field: mistake.Field, Message: mistake.Err.Error()}
		if wrong, ok := errors.AsType[*jinja.Error](mistake.Err); ok {
			found.Line, found.Column, found.Message = wrong.Line, wrong.Column, wrong.Message
		}
		if errors.Is(err, template.ErrNoClaim) {
			found.Message += "; name the file that has it, too"
		}
		findings = append(findings, lint.At(d, found))
	}
	if len(findings) == 0 && fieldOf.MatchString(err.Error()) {
		findings = append(findings, at(d, err))
	}
	return findings
}

// mistakes returns all template errors in an error.
func mistakes(err error) []*template.Error {
	switch wrapped := err.(type) { //nolint:errorlint // what is wrapped is looked at one by one
	case *template.Error:
		return []*template.Error{wrapped}
	case interface{ Unwrap() []error }:
		var all []*template.Error
		for _, each := range wrapped.Unwrap() {
			all = append(all, mistakes(each)...)
		}
		return all
	case interface{ Unwrap() error }:
		return mistakes(wrapped.Unwrap())
	default:
		return nil
	}
}

// complain reports why phases are not rendered. If creation, which is not asked for, fails as well, that may be the cause: the
// volume, whose handle the other phases see, is made up.
func (r *rendering) complain(env *cli.Env, style cli.Style, d source.Document) error {
	failures := r.failures
	if len(failures) > 0 {
		failures = append(r.unshown, failures...)
	}
	for _, f := range failures {
		findings := locate(d, f.err)
		if len(findings) == 0 {
			if _, err := fmt.Fprintf(env.ErrOut, "%s: %s: %s\n", style.Bad("error"), f.phase, cli.Plain(f.err.Error())); err != nil {
				return err
			}
			continue
		}
		if err := lint.Print(env.ErrOut, style, env.Terminal(), findings); err != nil {
			return err
		}
	}
	return nil
}
