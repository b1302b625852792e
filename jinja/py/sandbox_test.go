package py

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// point is an object that has its own attributes.
type point struct{}

func (point) TypeName() string { return "Point" }

func (point) Attr(_ *Budget, name string) (Value, bool, error) {
	switch name {
	case "x":
		return NewInt(5), true, nil
	case "_secret":
		return NewInt(6), true, nil
	case "broken":
		return nil, true, valueError("it is broken")
	default:
		return nil, false, nil
	}
}

// looked returns the result of a look-up as text: a value, "undefined", "unsafe", or the name of an exception.
func looked(t *testing.T, v Value, err error) string {
	t.Helper()
	if f, ok := v.(*Func); ok && f.Type != "type" && f.Type != "GenericAlias" {
		return f.Type + " " + f.Name
	}
	u, ok := v.(*Undefined)
	switch {
	case err != nil || !ok:
		return outcome(t, ample(t), v, err)
	case u.Unsafe:
		return "unsafe"
	default:
		return "undefined"
	}
}

func TestSandboxLookUp(t *testing.T) {
	named := &Tuple{Items: []Value{Str("k"), listOf()}, Fields: []string{"grouper", "list"}}
	generator := func() *Generator {
		return &Generator{Type: "generator", Fn: func(*Budget) (Value, bool, error) { return nil, false, nil }}
	}
	tests := map[string]struct {
		object     Value
		name       string
		attr, item string
	}{
		"an item of a dictionary":             {dictOf(Str("a"), NewInt(1)), "a", "1", "1"},
		"a method before an item of its name": {dictOf(Str("items"), NewInt(1)), "items", "builtin_function_or_method items", "1"},
		"what there is not":                   {dictOf(), "a", "undefined", "undefined"},
		"a mutating method":                   {dictOf(), "update", "unsafe", "unsafe"},
		"an item named as a mutating method":  {dictOf(Str("update"), NewInt(1)), "update", "unsafe", "1"},
		"an item with an underscore":          {dictOf(Str("_a"), NewInt(1)), "_a", "1", "1"},
		"an internal":                         {dictOf(), "__class__", "unsafe", "unsafe"},
		"no internal":                         {dictOf(), "__nothing__", "undefined", "undefined"},
		"a part of a number":                  {Bool(true), "real", "1", "1"},
		"no part of a number":                 {NewInt(1), "foo", "undefined", "undefined"},
		"the start of a range":                {&Range{1, 5, 1}, "start", "1", "1"},
		"a field of a named tuple":            {named, "grouper", "'k'", "'k'"},
		"a method of a named tuple":           {named, "_asdict", "unsafe", "unsafe"},
		"the frame of a generator":            {generator(), "gi_frame", "unsafe", "unsafe"},
		"whether a generator runs":            {generator(), "gi_running", "False", "False"},
		"what is not supported":               {generator(), "gi_suspended", "NotImplementedError", "NotImplementedError"},
		"an attribute of an object":           {point{}, "x", "5", "5"},
		"an error of an attribute":            {point{}, "broken", "ValueError", "ValueError"},
		"a secret of an object":               {point{}, "_secret", "unsafe", "unsafe"},
		"an internal of an object":            {point{}, "__init__", "unsafe", "unsafe"},
		"an attribute of what is undefined":   {missingName, "x", "UndefinedError", "UndefinedError"},
		"an internal of what is undefined":    {missingName, "__class__", "unsafe", "UndefinedError"},
		"an internal that it has not":         {missingName, "__x", "UndefinedError", "UndefinedError"},
		"an attribute of what is unsafe":      {&Undefined{Unsafe: true}, "x", "SecurityError", "SecurityError"},
		"a method of a type":                  {&Func{Name: "dict", Type: "type"}, "get", "method_descriptor get", "dict['get']"},
		"the order of types":                  {&Func{Name: "dict", Type: "type"}, "mro", "unsafe", "dict['mro']"},
		"None":                                {None{}, "x", "undefined", "undefined"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v, err := SandboxAttr(ample(t), test.object, test.name)
			if diff := cmp.Diff(test.attr, looked(t, v, err)); diff != "" {
				t.Errorf("SandboxAttr (-want +got):\n%s", diff)
			}
			v, err = SandboxItem(ample(t), test.object, Str(test.name))
			if diff := cmp.Diff(test.item, looked(t, v, err)); diff != "" {
				t.Errorf("SandboxItem (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSandboxItemOfOtherKeys(t *testing.T) {
	tests := map[string]struct {
		object, key Value
		want        string
	}{
		"a position":                   {listOf(Str("a")), NewInt(0), "'a'"},
		"a position outside":           {listOf(), NewInt(0), "undefined"},
		"a position of a number":       {NewInt(5), NewInt(0), "undefined"},
		"a list as a key":              {dictOf(), listOf(), "undefined"},
		"an undefined key":             {dictOf(), missingName, "undefined"},
		"an item of what is undefined": {missingName, NewInt(0), "UndefinedError"},
		"markup as a name":             {Str("a"), Markup("upper"), "builtin_function_or_method upper"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v, err := SandboxItem(ample(t), test.object, test.key)
			if diff := cmp.Diff(test.want, looked(t, v, err)); diff != "" {
				t.Errorf("SandboxItem (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMethodOfType checks that a method that is read from a type takes the object as its first argument.
func TestMethodOfType(t *testing.T) {
	tests := map[string]struct {
		args Args
		want string
	}{
		"a dictionary": {pos(dictOf(Str("a"), NewInt(1)), Str("a")), "1"},
		"no object":    {Args{}, "TypeError"},
		"a list":       {pos(listOf(), Str("a")), "TypeError"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			get, err := SandboxAttr(b, &Func{Name: "dict", Type: "type"}, "get")
			if err != nil {
				t.Fatal(err)
			}
			v, err := Call(b, get, test.args)
			if diff := cmp.Diff(test.want, outcome(t, b, v, err)); diff != "" {
				t.Errorf("dict.get(…) (-want +got):\n%s", diff)
			}
		})
	}
}
