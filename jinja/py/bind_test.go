package py

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBind(t *testing.T) {
	params := []Param{
		{Name: "a", PosOnly: true}, {Name: "b", Default: NewInt(2)}, {Name: "c", Default: None{}, KwOnly: true},
	}
	tests := map[string]struct {
		args Args
		want string
	}{
		"defaults fill in":         {pos(NewInt(1)), "(1, 2, None)"},
		"by position":              {pos(NewInt(1), NewInt(5)), "(1, 5, None)"},
		"by name in any order":     {Args{Pos: []Value{NewInt(1)}, Named: []NamedArg{{Name: "c", Value: Str("x")}, {Name: "b", Value: NewInt(5)}}}, "(1, 5, 'x')"},
		"nothing":                  {Args{}, "f() missing 1 required positional argument: 'a'"},
		"too much":                 {pos(NewInt(1), NewInt(2), NewInt(3)), "f() takes 2 positional arguments but 3 were given"},
		"twice":                    {Args{Pos: []Value{NewInt(1), NewInt(2)}, Named: []NamedArg{{Name: "b", Value: NewInt(5)}}}, "f() got multiple values for argument 'b'"},
		"a name that there is not": {Args{Pos: []Value{NewInt(1)}, Named: []NamedArg{{Name: "d", Value: NewInt(5)}}}, "f() got an unexpected keyword argument 'd'"},
		"a name that may not be":   {Args{Named: []NamedArg{{Name: "a", Value: NewInt(5)}}}, "f() got an unexpected keyword argument 'a'"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			values, err := Bind("f", test.args, params...)
			var got string
			if err == nil {
				got = outcome(t, ample(t), tupleOf(values...), nil)
			} else {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Bind (-want +got):\n%s", diff)
			}
		})
	}
}
