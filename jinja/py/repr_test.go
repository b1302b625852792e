package py

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRepr compares repr and str with the results of python3.
func TestRepr(t *testing.T) {
	tests := map[string]struct {
		v         Value
		repr, str string
	}{
		"text":                        {Str("a"), "'a'", "a"},
		"text with a quote":           {Str("it's"), "\"it's\"", "it's"},
		"text with both quotes":       {Str("'\""), "'\\'\"'", "'\""},
		"text with escapes":           {Str("\\\n\t\r\x00\x7f"), "'\\\\\\n\\t\\r\\x00\\x7f'", "\\\n\t\r\x00\x7f"},
		"text that cannot be printed": {Str("\u00a0\u00ad\u200b\ue000\U000e0001"), "'\\xa0\\xad\\u200b\\ue000\\U000e0001'", "\u00a0\u00ad\u200b\ue000\U000e0001"},
		"text that can be":            {Str("é日😀"), "'é日😀'", "é日😀"},
		"text later than Python":      {Str("\U0001fae8"), "'\\U0001fae8'", "\U0001fae8"},
		"markup":                      {Markup("<b>"), "Markup('<b>')", "<b>"},
		"bytes":                       {Bytes("'\x00\xff\x0a"), "b\"'\\x00\\xff\\n\"", "b\"'\\x00\\xff\\n\""},
		"bytes with both quotes":      {Bytes("'\x22"), "b'\\'\"'", "b'\\'\"'"},
		"nothing":                     {tupleOf(), "()", "()"},
		"one in a tuple":              {tupleOf(NewInt(1)), "(1,)", "(1,)"},
		"a list":                      {listOf(NewInt(1), Str("a"), None{}, Bool(true), Float(1.0)), "[1, 'a', None, True, 1.0]", "[1, 'a', None, True, 1.0]"},
		"a dictionary":                {dictOf(Str("a"), dictOf(NewInt(1), listOf(NewInt(2))), tupleOf(NewInt(1)), Markup("x")), "{'a': {1: [2]}, (1,): Markup('x')}", "{'a': {1: [2]}, (1,): Markup('x')}"},
		"an empty dictionary":         {dictOf(), "{}", "{}"},
		"keys":                        {keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "dict_keys(['a', 'b'])", "dict_keys(['a', 'b'])"},
		"values":                      {valuesOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "dict_values([1, 2])", "dict_values([1, 2])"},
		"items":                       {pairsOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "dict_items([('a', 1), ('b', 2)])", "dict_items([('a', 1), ('b', 2)])"},
		"a range":                     {&Range{0, 3, 1}, "range(0, 3)", "range(0, 3)"},
		"a range with a step":         {&Range{0, 3, 2}, "range(0, 3, 2)", "range(0, 3, 2)"},
		"what is undefined":           {listOf(missingName), "[Undefined]", "[Undefined]"},
		"large numbers":               {listOf(tenTo(30), minusTenTo(30)), "[1000000000000000000000000000000, -1000000000000000000000000000000]", "[1000000000000000000000000000000, -1000000000000000000000000000000]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			if diff := cmp.Diff(test.repr, outcome(t, b, test.v, nil)); diff != "" {
				t.Errorf("repr (-want +got):\n%s", diff)
			}
			got, err := ToStr(b, test.v)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.str, got); diff != "" {
				t.Errorf("str (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReprInside checks that an object that contains itself is abbreviated inside its own repr.
func TestReprInside(t *testing.T) {
	list, dict := listOf(), dictOf(Str("a"), None{})
	list.Items = append(list.Items, dict)
	dict.SetStr("a", list)
	if diff := cmp.Diff("[{'a': [...]}]", outcome(t, ample(t), list, nil)); diff != "" {
		t.Errorf("a list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("{'a': [{...}]}", outcome(t, ample(t), dict, nil)); diff != "" {
		t.Errorf("a dictionary (-want +got):\n%s", diff)
	}
}

// TestSizes checks bool, len and list.
func TestSizes(t *testing.T) {
	tests := map[string]struct {
		v                 Value
		truth, size, list string
	}{
		"text":              {Str("añ"), "True", "2", "['a', 'ñ']"},
		"nothing":           {Str(""), "False", "0", "[]"},
		"zero":              {NewInt(0), "False", "TypeError", "TypeError"},
		"a float":           {Float(0.0), "False", "TypeError", "TypeError"},
		"no number":         {Float(math.NaN()), "True", "TypeError", "TypeError"},
		"None":              {None{}, "False", "TypeError", "TypeError"},
		"false":             {Bool(false), "False", "TypeError", "TypeError"},
		"a list":            {listOf(NewInt(0)), "True", "1", "[0]"},
		"an empty list":     {listOf(), "False", "0", "[]"},
		"a dictionary":      {dictOf(Str("a"), NewInt(0)), "True", "1", "['a']"},
		"an empty range":    {&Range{2, 2, 1}, "False", "0", "[]"},
		"keys":              {keysOf(Str("a"), NewInt(1)), "True", "1", "['a']"},
		"no values":         {valuesOf(), "False", "0", "[]"},
		"what is undefined": {missingName, "False", "0", "[]"},
		"bytes":             {Bytes("ab"), "True", "2", "[97, 98]"},
		"a tuple":           {tupleOf(NewInt(1)), "True", "1", "[1]"},
		"markup":            {Markup("ab"), "True", "2", "['a', 'b']"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			truth, err := Truth(b, test.v)
			if diff := cmp.Diff(test.truth, outcome(t, b, Bool(truth), err)); diff != "" {
				t.Errorf("bool (-want +got):\n%s", diff)
			}
			size, err := Len(b, test.v)
			if diff := cmp.Diff(test.size, outcome(t, b, NewInt(int64(size)), err)); diff != "" {
				t.Errorf("len (-want +got):\n%s", diff)
			}
			items, err := Collect(b, test.v)
			if diff := cmp.Diff(test.list, outcome(t, b, listOf(items...), err)); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
		})
	}
}
