package template

import (
	"context"
	"fmt"

	"github.com/albertofaria/pav/jinja"
	"github.com/albertofaria/pav/jinja/py"
)

// NewEnvironment returns Jinja as the contract has it: expressions "must evaluate to strings or numeric
// values", and there is a filter tobash.
func NewEnvironment(limits Limits) *jinja.Environment {
	return jinja.New(jinja.Options{
		Limits:   limits.engine(),
		Source:   limits.Source,
		Filters:  map[string]jinja.Filter{"tobash": toBash},
		Finalize: finalize,
	})
}

// Render renders a template, and reports whether its text is YAML.
//
// Contract: "If a template sets the yaml variable to true …, then the final string resulting from the
// template's evaluation is parsed as YAML".
func Render(ctx context.Context, t *jinja.Template, vars map[string]py.Value) (text string, isYAML bool, err error) {
	result, err := t.Render(ctx, vars)
	if err != nil {
		return "", false, err
	}
	flag, found := result.Variable("yaml")
	if !found {
		return result.Text, false, nil
	}
	set, ok := flag.(py.Bool)
	if !ok {
		return "", false, typeError("the variable yaml must be true or false, not of type %s", flag.TypeName())
	}
	return result.Text, bool(set), nil
}

// finalize returns the text that an expression prints.
func finalize(b *py.Budget, v py.Value) (string, error) {
	if err := checkPrintable(v); err != nil {
		return "", err
	}
	return py.ToStr(b, v)
}

// checkPrintable rejects values that would print as None, as nothing, or as Python lists: a template that prints
// these is a mistake.
func checkPrintable(v py.Value) error {
	switch v := v.(type) {
	case py.Str, py.Markup, py.Int, py.Float, py.Bool:
		return nil
	case *py.Undefined:
		message := v.Err().Error()
		if !v.Unsafe {
			message += " (if it may be missing, use |default('…'))"
		}
		return &py.Error{Kind: py.UndefinedUse, Exception: "UndefinedError", Message: message}
	case py.None:
		return typeError("the value is none, which is neither a string nor a number; use |default('…', true)")
	case *py.List, *py.Tuple:
		return typeError("the value is a %s, neither a string nor a number; use |join(',') or |tojson", v.TypeName())
	case *py.Dict:
		return typeError("the value is a dict, neither a string nor a number; name one of its keys, or use |tojson")
	default:
		return typeError("the value is of type %s, neither a string nor a number", v.TypeName())
	}
}

func typeError(format string, args ...any) error {
	return &py.Error{Kind: py.Type, Exception: "TypeError", Message: fmt.Sprintf(format, args...)}
}
