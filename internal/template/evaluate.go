package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Variables are the names that a template can use, with plain data as values: nil, bool, int64,
// float64, string, []any and map[string]any, to any depth.
type Variables map[string]any

// ErrNoClaim is what a GetPVC returns where there is no such claim: the template's author is told. Any
// other error of it ends the evaluation as it is, and says nothing about the template.
var ErrNoClaim = errors.New("there is no such claim")

// GetPVC looks up a claim for the template function get_pvc and returns it as plain data.
type GetPVC func(ctx context.Context, name, namespace string) (map[string]any, error)

// Error says which field of a definition cannot be evaluated, and why.
type Error struct {
	// Field is the path of the field, from spec on.
	Field string

	// Err is the reason. It never has the template's source in it.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Evaluate returns value, which is plain data, with every string in it replaced by what it
// evaluates to as a template. Field is the path of value for errors, which are of type *Error, but for
// those of getPVC.
//
// Contract: "all string fields under spec (no matter how nested …) are evaluated as Jinja 3.0
// templates"; if a template sets yaml to true its text "is parsed as YAML, and the field holding
// the template takes on the resulting value"; "template evaluation is not recursive".
func Evaluate(ctx context.Context, field string, value any, vars Variables, getPVC GetPVC) (any, error) {
	switch v := value.(type) {
	case string:
		return evaluateString(ctx, field, v, vars, getPVC)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			evaluated, err := Evaluate(ctx, field+"["+strconv.Itoa(i)+"]", item, vars, getPVC)
			if err != nil {
				return nil, err
			}
			out[i] = evaluated
		}
		return out, nil
	case map[string]any:
		return evaluateMap(ctx, field, v, vars, getPVC)
	default:
		return v, nil
	}
}

func evaluateMap(ctx context.Context, field string, in map[string]any, vars Variables, getPVC GetPVC) (any, error) {
	keys := make([]string, 0, len(in))
	for key := range in {
		keys = append(keys, key)
	}
	// Sorted, so that a definition with several mistakes names the same one each time.
	slices.Sort(keys)

	out := make(map[string]any, len(in))
	for _, key := range keys {
		evaluated, err := Evaluate(ctx, child(field, key), in[key], vars, getPVC)
		if err != nil {
			return nil, err
		}
		out[key] = evaluated
	}
	return out, nil
}

func child(field, key string) string {
	if strings.ContainsAny(key, "./[]") {
		return field + "[" + key + "]"
	}
	return field + "." + key
}

func evaluateString(ctx context.Context, field, source string, vars Variables, getPVC GetPVC) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, &Error{Field: field, Err: err}
	}
	// A string without an opening delimiter is its own value, but for the one trailing newline that Jinja removes.
	if !strings.Contains(source, "{{") && !strings.Contains(source, "{%") && !strings.Contains(source, "{#") {
		return strings.TrimSuffix(source, "\n"), nil
	}

	text, isYAML, err := render(ctx, source, vars, getPVC)
	if _, ok := errors.AsType[*lookupError](err); ok {
		return nil, fmt.Errorf("evaluating %s: %w", field, err)
	}
	if err != nil {
		return nil, &Error{Field: field, Err: err}
	}
	if !isYAML {
		return text, nil
	}

	value, err := parseYAML(text)
	if err != nil {
		return nil, &Error{Field: field, Err: fmt.Errorf("the template sets yaml, but its text is no YAML: %w", err)}
	}
	return value, nil
}

func parseYAML(text string) (any, error) {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

// Decode returns raw, which is JSON, as plain data: integers are int64.
func Decode(raw apiextensionsv1.JSON) (any, error) {
	if len(raw.Raw) == 0 {
		return nil, errors.New("is empty")
	}
	return decode(raw.Raw)
}

func decode(raw []byte) (any, error) {
	var value any
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("decoding JSON: %w", err)
	}
	return value, nil
}
