package py

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStrFormat compares str.format with its results in the sandbox of Jinja.
func TestStrFormat(t *testing.T) {
	tests := map[string]struct {
		format string
		args   Args
		want   string
	}{
		"fields are counted":                  {"{} {}", pos(NewInt(1), NewInt(2)), "'1 2'"},
		"fields have numbers":                 {"{1} {0}", pos(NewInt(1), NewInt(2)), "'2 1'"},
		"fields have names":                   {"{a}{b}", Args{Named: []NamedArg{{Name: "a", Value: NewInt(1)}, {Name: "b", Value: NewInt(2)}}}, "'12'"},
		"braces":                              {"{{{}}}}}{{", pos(NewInt(1)), "'{1}}{'"},
		"a number after counting":             {"{}{0}", pos(NewInt(1)), "ValueError"},
		"counting after a number":             {"{0}{}", pos(NewInt(1)), "ValueError"},
		"counting after a path with a number": {"{0.real}{}", pos(NewInt(1)), "'11'"},
		"a number that is too large":          {"{1}", pos(NewInt(1)), "IndexError"},
		"a number with too many digits":       {"{99999999999999999999}", pos(NewInt(1)), "ValueError"},
		"a number of another script":          {"{٠}", pos(NewInt(1)), "'1'"},
		"a digit that is no number":           {"{²}", pos(NewInt(1)), "KeyError"},
		"a name that there is not":            {"{b}", Args{Named: []NamedArg{{Name: "a", Value: NewInt(1)}}}, "KeyError"},
		"no name before a path":               {"{.a}", pos(NewInt(1)), "KeyError"},
		"a negative number is a name":         {"{-1}", pos(NewInt(1)), "KeyError"},
		"an item by name": {
			"{0[a][b][1]}", pos(dictOf(Str("a"), dictOf(Str("b"), listOf(NewInt(5), NewInt(6))), Str("x y"), NewInt(7), Str("items"), NewInt(8))),
			"'6'",
		},
		"an item with a blank": {
			"{0[x y]}", pos(dictOf(Str("a"), dictOf(Str("b"), listOf(NewInt(5), NewInt(6))), Str("x y"), NewInt(7), Str("items"), NewInt(8))),
			"'7'",
		},
		"an attribute that is an item": {
			"{0.a}", pos(dictOf(Str("a"), dictOf(Str("b"), listOf(NewInt(5), NewInt(6))), Str("x y"), NewInt(7), Str("items"), NewInt(8))),
			`"{'b': [5, 6]}"`,
		},
		"an item that there is not": {
			"[{0[z]}]", pos(dictOf(Str("a"), dictOf(Str("b"), listOf(NewInt(5), NewInt(6))), Str("x y"), NewInt(7), Str("items"), NewInt(8))),
			"'[]'",
		},
		"a negative item is a name": {"[{0[-1]}]", pos(listOf(NewInt(1))), "'[]'"},
		"an item before an attribute of its name": {
			"{0[items]}", pos(dictOf(Str("a"), dictOf(Str("b"), listOf(NewInt(5), NewInt(6))), Str("x y"), NewInt(7), Str("items"), NewInt(8))),
			"'8'",
		},
		"an item of what there is not": {
			"{0[z][z]}", pos(dictOf(Str("a"), dictOf(Str("b"), listOf(NewInt(5), NewInt(6))), Str("x y"), NewInt(7), Str("items"), NewInt(8))),
			"UndefinedError",
		},
		"an attribute of a number":  {"{.real}", Args{Named: []NamedArg{{Name: "", Value: NewInt(1)}}}, "'1'"},
		"an attribute of the first": {"{0.real}", pos(NewInt(3)), "'3'"},
		"what is unsafe":            {"{0.__class__}", pos(NewInt(1)), "''"},
		"what is unsafe, used":      {"{0.__class__.x}", pos(NewInt(1)), "SecurityError"},
		"a method that is refused":  {"{0.append}", pos(listOf()), "''"},
		"no attribute":              {"{0.}", pos(NewInt(1)), "ValueError"},
		"no item":                   {"{0[]}", pos(NewInt(1)), "ValueError"},
		"something after an item": {
			"{0[a]b}", pos(dictOf(Str("a"), dictOf(Str("b"), listOf(NewInt(5), NewInt(6))), Str("x y"), NewInt(7), Str("items"), NewInt(8))),
			"ValueError",
		},
		"an item without an end": {
			"{0[a}", pos(dictOf(Str("a"), dictOf(Str("b"), listOf(NewInt(5), NewInt(6))), Str("x y"), NewInt(7), Str("items"), NewInt(8))),
			"ValueError",
		},
		"a bracket in an item":                {"{0[a[b]}", pos(dictOf(Str("a[b"), NewInt(1))), "'1'"},
		"a brace in an item":                  {"{0[}]}", pos(dictOf(Str("}"), NewInt(1))), "'1'"},
		"conversions":                         {"{!r} {!s} {!a}", pos(Str("é"), Str("é"), Str("é")), "\"'é' é '\\\\xe9'\""},
		"an unknown conversion":               {"{!x}", pos(NewInt(1)), "ValueError"},
		"a conversion without an end":         {"{!", pos(NewInt(1)), "ValueError"},
		"a conversion without its character":  {"{0!}", pos(NewInt(1)), "ValueError"},
		"a long conversion":                   {"{!rr}", pos(NewInt(1)), "ValueError"},
		"a conversion before a specification": {"{!r:>5}", pos(Str("a")), `"  'a'"`},
		"a specification":                     {"{:>5}|{:05.1f}", pos(Str("a"), Float(2.55)), "'    a|002.5'"},
		"a field in a specification": {
			"{:{}}|{:{w}}", Args{Pos: []Value{Str("a"), NewInt(3), Str("b")}, Named: []NamedArg{{Name: "w", Value: NewInt(2)}}},
			"'a  |b '",
		},
		"braces in a specification":              {"{:{{}}}", pos(NewInt(1)), "ValueError"},
		"fields nested too deep":                 {"{:{:{}}}", pos(NewInt(1), NewInt(2), NewInt(3)), "ValueError"},
		"a specification without an end":         {"{:5", pos(NewInt(1)), "ValueError"},
		"an opening brace in a name":             {"{a{b}", pos(NewInt(1)), "ValueError"},
		"a single opening brace":                 {"{", Args{}, "ValueError"},
		"a single closing brace":                 {"a}", Args{}, "ValueError"},
		"a specification for None":               {"{:5}", pos(None{}), "TypeError"},
		"what is undefined":                      {"[{}]", pos(missingName), "'[]'"},
		"a specification for what is undefined":  {"{:5}", pos(missingName), "TypeError"},
		"what is undefined of what is undefined": {"{.a}", pos(missingName), "KeyError"},
		"an unsafe name":                         {"{0._x}", pos(dictOf(Str("_x"), NewInt(1))), "'1'"},
		"arguments that are not used":            {"a", Args{Pos: []Value{NewInt(1)}, Named: []NamedArg{{Name: "b", Value: NewInt(2)}}}, "'a'"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			v, err := StrFormat(b, Str(test.format), test.args)
			if diff := cmp.Diff(test.want, outcome(t, b, v, err)); diff != "" {
				t.Errorf("%q.format(…) (-want +got):\n%s", test.format, diff)
			}
		})
	}
}
