package template

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/albertofaria/pav/jinja"
)

// Evaluator evaluates the fields of definitions, and remembers them compiled. It is safe for concurrent use.
type Evaluator struct {
	limits      Limits
	environment *jinja.Environment
	programs    *programs
}

// NewEvaluator returns an evaluator with limits.
func NewEvaluator(limits Limits) *Evaluator {
	return &Evaluator{limits: limits, environment: NewEnvironment(limits), programs: newPrograms(maxRemembered)}
}

// Field identifies a field of one generation of an object.
type Field struct {
	// Object is the object that has the field.
	Object types.UID

	// Generation is the generation of the object when it was read.
	Generation int64

	// Path is the path of the field in the object, from spec on.
	Path string
}

// Evaluate returns the value of a field. Definition is plain data with templates. An error in the definition is an
// *Error; other errors are those of the context and of getPVC.
func (e *Evaluator) Evaluate(ctx context.Context, field Field, definition apiextensionsv1.JSON, vars Variables, getPVC GetPVC) (any, error) {
	program, err := e.program(field, definition)
	if err != nil {
		return nil, err
	}
	return program.Evaluate(ctx, vars, getPVC)
}

func (e *Evaluator) program(field Field, definition apiextensionsv1.JSON) (*Program, error) {
	if program := e.programs.get(field); program != nil {
		return program, nil
	}
	value, err := Decode(definition)
	if err != nil {
		return nil, &Error{Field: field.Path, Err: err}
	}
	program, err := Compile(e.environment, e.limits, field.Path, value)
	if err != nil {
		return nil, err
	}
	e.programs.put(field, program, len(definition.Raw)+program.constants)
	return program, nil
}

// Decode returns JSON as plain data: integers are int64.
func Decode(raw apiextensionsv1.JSON) (any, error) {
	if len(raw.Raw) == 0 {
		return nil, errors.New("is empty")
	}
	var value any
	if err := utiljson.Unmarshal(raw.Raw, &value); err != nil {
		return nil, fmt.Errorf("decoding JSON: %w", err)
	}
	return value, nil
}
