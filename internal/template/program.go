package template

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/albertofaria/pav/jinja"
)

// Program is a field's definition with its templates compiled. It is never changed, and safe for concurrent use.
type Program struct {
	limits Limits
	root   part

	// constants is the approximate size of the constant parts of the templates, in bytes.
	constants int
}

// HasTemplate reports whether the text has Jinja in it. That evaluation changes line breaks in any text does not count.
func HasTemplate(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "{%") || strings.Contains(text, "{#")
}

// part evaluates a part of a definition.
type part func(ctx context.Context, e *evaluation) (any, error)

// Compile compiles all strings in value, which is plain data, at any depth. Field is the path of value. The error has
// an *Error for each string that is not a valid template.
//
// Contract: "all string fields under spec (no matter how nested …) are evaluated as Jinja 3.0 templates".
func Compile(environment *jinja.Environment, limits Limits, field string, value any) (*Program, error) {
	b := &builder{compiler: environment.Compiler(), deadline: time.Now().Add(limits.Timeout)}
	root := b.part(field, value)
	if len(b.mistakes) > 0 {
		return nil, join(b.mistakes)
	}
	return &Program{limits: limits, root: root, constants: b.compiler.Constants()}, nil
}

// Evaluate returns the field's value. An error that is the definition's fault has an *Error; other
// errors are those of the context and of getPVC.
func (p *Program) Evaluate(ctx context.Context, vars Variables, getPVC GetPVC) (any, error) {
	return p.root(ctx, newEvaluation(p.limits, vars, getPVC))
}

type builder struct {
	compiler *jinja.Compiler
	deadline time.Time
	mistakes []error
}

func (b *builder) part(field string, value any) part {
	switch v := value.(type) {
	case string:
		return b.template(field, v)
	case []any:
		return b.list(field, v)
	case map[string]any:
		return b.mapping(field, v)
	default:
		return func(context.Context, *evaluation) (any, error) { return v, nil }
	}
}

func (b *builder) template(field, source string) part {
	if time.Now().After(b.deadline) {
		// Constant parts are evaluated when they are compiled.
		b.mistakes = append(b.mistakes, &Error{Field: field, Err: errors.New("compiling the field takes too long")})
		return nil
	}
	t, err := b.compiler.Compile(source)
	if err != nil {
		b.mistakes = append(b.mistakes, &Error{Field: field, Err: err})
		return nil
	}
	return func(ctx context.Context, e *evaluation) (any, error) { return e.template(ctx, field, t) }
}

func (b *builder) list(field string, items []any) part {
	parts := make([]part, len(items))
	for i, item := range items {
		parts[i] = b.part(field+"["+strconv.Itoa(i)+"]", item)
	}
	return func(ctx context.Context, e *evaluation) (any, error) {
		values := make([]any, len(parts))
		for i, evaluate := range parts {
			var err error
			if values[i], err = evaluate(ctx, e); err != nil {
				return nil, err
			}
		}
		return values, nil
	}
}

func (b *builder) mapping(field string, entries map[string]any) part {
	// Sorted, so that several mistakes are always reported in the same order.
	keys := slices.Sorted(maps.Keys(entries))
	parts := make([]part, len(keys))
	for i, key := range keys {
		parts[i] = b.part(child(field, key), entries[key])
	}
	return func(ctx context.Context, e *evaluation) (any, error) {
		values := make(map[string]any, len(keys))
		for i, evaluate := range parts {
			value, err := evaluate(ctx, e)
			if err != nil {
				return nil, err
			}
			values[keys[i]] = value
		}
		return values, nil
	}
}

func child(field, key string) string {
	if strings.ContainsAny(key, "./[]") {
		return field + "[" + key + "]"
	}
	return field + "." + key
}
