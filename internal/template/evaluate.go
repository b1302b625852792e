package template

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/albertofaria/pav/internal/template/yaml11"
	"github.com/albertofaria/pav/jinja"
	"github.com/albertofaria/pav/jinja/py"
)

// evaluation is one evaluation of a field.
type evaluation struct {
	limits  Limits
	vars    Variables
	lookups *lookups
	started time.Time

	// seed is that of random choices; see seedOf.
	seed uint64

	// text is how many bytes its templates have yielded, and yaml the remaining budget for values of templates that
	// set yaml.
	text int
	yaml *yaml11.Limits
}

func newEvaluation(limits Limits, vars Variables, getPVC GetPVC) *evaluation {
	return &evaluation{
		limits: limits, vars: vars, started: time.Now(), seed: seedOf(vars), yaml: yaml11.LimitsFor(limits.Text),
		lookups: &lookups{get: getPVC, claims: map[claimKey]map[string]any{}},
	}
}

// template returns the value of one of the field's strings.
//
// Contract: if the template sets yaml, "the field holding the template takes on the resulting value";
// "if the resulting value has string fields, they are not evaluated as templates".
func (e *evaluation) template(ctx context.Context, field string, t *jinja.Template) (any, error) {
	value, err := e.value(ctx, t.Seeded(e.seed^hash(field)))
	_, isLookup := errors.AsType[*lookupError](err)
	switch {
	case err == nil:
		return value, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("evaluating %s: %w", field, ctx.Err())
	case isLookup:
		return nil, fmt.Errorf("evaluating %s: %w", field, err)
	default:
		return nil, &Error{Field: field, Err: err}
	}
}

func (e *evaluation) value(ctx context.Context, t *jinja.Template) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if time.Since(e.started)-e.lookups.waited > e.limits.Timeout {
		return nil, fmt.Errorf("the evaluation takes longer than %s", e.limits.Timeout)
	}
	vars, err := e.variables(ctx)
	if err != nil {
		return nil, err
	}
	text, isYAML, err := Render(ctx, t, vars)
	if err != nil {
		return nil, err
	}
	if e.text += len(text); e.text > e.limits.Text {
		return nil, fmt.Errorf("the field's templates yield more than %d bytes", e.limits.Text)
	}
	if !isYAML {
		return text, nil
	}
	return parseYAML(text, e.yaml)
}

// variables returns the context of one template. Its changes to a list are not visible to other templates.
func (e *evaluation) variables(ctx context.Context) (map[string]py.Value, error) {
	values := maps.Clone(missing())
	for name, data := range e.vars {
		value, err := py.FromData(data)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		values[name] = value
	}
	values["get_pvc"] = e.lookups.function(ctx)
	return values, nil
}
