package selftest

import (
	"context"
	"fmt"

	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/template"
)

// lint checks the definition as admission does.
func (r *run) lint(context.Context) (outcome, error) {
	findings := definition.NewChecker(template.DefaultLimits()).Check(r.input.document.Object)
	found := outcome{result: Passed}
	errors := 0
	for _, f := range findings {
		line, column := r.input.document.Position(f.Field, f.Key, f.Line, f.Column)
		severity := "warning"
		if f.Severity == definition.Error {
			severity = "error"
			errors++
		}
		found.details = append(found.details, fmt.Sprintf("%s:%d:%d: %s: %s: %s", r.input.document.File, line, column, severity, f.Field, f.Message))
	}
	warnings := len(findings) - errors
	switch {
	case errors > 0:
		found.result = Failed
		found.message = plural(errors, "error")
	case warnings > 0:
		found.result = Warning
		found.message = plural(warnings, "warning")
	}
	return found, nil
}
