package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/template/yaml11"
	"github.com/albertofaria/pav/jinja"
	"github.com/albertofaria/pav/jinja/py"
)

// The engine with the settings of PaV.
var (
	limits      = template.DefaultLimits()
	environment = template.NewEnvironment(limits)
)

// DecodeContext decodes the JSON of a context. Without any JSON, it returns an empty context.
func DecodeContext(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return py.Object{}, nil
	}
	return py.DecodeJSON(raw)
}

// Evaluate returns the outcome of a template with PaV's engine. variables is a result of DecodeContext. Evaluate does
// not change it.
func Evaluate(ctx context.Context, source string, variables any) Outcome {
	t, err := environment.Compile(source)
	if err != nil {
		return failure(StageCompile, err)
	}
	values, err := Variables(variables)
	if err != nil {
		return failure(StageRender, err)
	}
	text, isYAML, err := template.Render(ctx, t, values)
	if err != nil {
		return failure(StageRender, err)
	}
	if !isYAML {
		return Outcome{Text: text}
	}
	value, err := yaml11.Parse(text, yaml11.LimitsFor(limits.Text))
	if err != nil {
		return failure(StageYAML, err)
	}
	return Outcome{Text: text, YAML: true, Value: plain(ctx, value)}
}

// Variables converts a context to the variables of one render.
func Variables(variables any) (map[string]py.Value, error) {
	members, ok := variables.(py.Object)
	if !ok {
		return nil, fmt.Errorf("a context is a %T, not a mapping", variables)
	}
	values := make(map[string]py.Value, len(members))
	for _, member := range members {
		value, err := py.FromData(member.Value)
		if err != nil {
			return nil, err
		}
		values[member.Key] = value
	}
	return values, nil
}

func failure(stage string, err error) Outcome {
	kind := py.Other
	if raised, ok := errors.AsType[*py.Error](err); ok {
		kind = raised.Kind
	}
	if located, ok := errors.AsType[*jinja.Error](err); ok {
		kind = located.Kind
	}
	return Outcome{Class: class(kind), Stage: stage, Message: err.Error()}
}

// class returns the name of an error's kind in the data. The data has no class for limits, because Python has few
// limits.
func class(kind py.Kind) string {
	switch kind {
	case py.Syntax:
		return ClassSyntax
	case py.UndefinedUse:
		return ClassUndefined
	case py.Type:
		return ClassType
	case py.Security:
		return ClassSecurity
	default:
		return ClassOther
	}
}

// plain converts a YAML value to a JSON value. If JSON has no such value, the result contains its repr in Python.
func plain(ctx context.Context, value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(ctx, item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = plain(ctx, item)
		}
		return out
	case float64:
		return plainFloat(v)
	case yaml11.Date:
		return repr(v.Repr())
	case yaml11.Timestamp:
		return repr(v.Repr())
	case yaml11.Bytes:
		return repr(reprOf(ctx, py.Bytes(v)))
	case yaml11.Set:
		return reprOfSet(ctx, v)
	default:
		return v
	}
}

func repr(text string) any { return map[string]any{"__repr__": text} }

// plainFloat converts a float to a JSON value that differs from an integer.
func plainFloat(f float64) any {
	text := py.FloatText(f)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return repr(text)
	}
	return json.Number(text)
}

func reprOf(ctx context.Context, value py.Value) string {
	enough := py.Limits{Steps: math.MaxInt64, Memory: math.MaxInt64, Text: math.MaxInt, Depth: 1, Time: math.MaxInt64}
	text, err := py.Repr(py.NewBudget(ctx, enough), value)
	if err != nil {
		return err.Error()
	}
	return text
}

func reprOfSet(ctx context.Context, members yaml11.Set) any {
	if len(members) == 0 {
		return repr("set()")
	}
	texts := make([]string, len(members))
	for i, member := range members {
		texts[i] = reprOf(ctx, py.Str(member))
	}
	return repr("{" + strings.Join(texts, ", ") + "}")
}
