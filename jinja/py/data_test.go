package py

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFromData checks the conversion of data to values.
func TestFromData(t *testing.T) {
	tests := map[string]struct {
		data any
		want string
	}{
		"nothing":                 {nil, "None"},
		"a truth":                 {true, "True"},
		"integers":                {[]any{int(1), int32(2), int64(math.MinInt64)}, "[1, 2, -9223372036854775808]"},
		"a float":                 {1.0, "1.0"},
		"a number of JSON":        {json.Number("18446744073709551616"), "18446744073709551616"},
		"a broken number of JSON": {json.Number("1e2"), "100.0"},
		"text":                    {"é", "'é'"},
		"a map by its keys":       {map[string]any{"b": []any{}, "a": map[string]any{}}, "{'a': {}, 'b': []}"},
		"an object in its order":  {Object{{"b", Object{{"c", 1}}}, {"a", nil}}, "{'b': {'c': 1}, 'a': None}"},
		"an object with one key twice": {
			Object{{"b", 1}, {"a", 2}, {"b", 3}},
			"{'b': 3, 'a': 2}",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v, err := FromData(test.data)
			if diff := cmp.Diff(test.want, outcome(t, ample(t), v, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if v, err := FromData(struct{}{}); err == nil {
		t.Errorf("got %v of a Go value that is no data", v)
	}
}

// TestFromDataCopies checks that a change of a value does not change the data, and that each access to an item returns
// the same value.
func TestFromDataCopies(t *testing.T) {
	data := map[string]any{"list": []any{int64(1), int64(2)}}
	v, err := FromData(data)
	if err != nil {
		t.Fatal(err)
	}
	b := ample(t)
	for range 2 {
		list, err := Item(b, v, Str("list"))
		if err != nil {
			t.Fatal(err)
		}
		pop, err := SandboxAttr(b, list, "pop")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Call(b, pop, Args{}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff("{'list': []}", outcome(t, b, v, nil)); diff != "" {
		t.Errorf("the value (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"list": []any{int64(1), int64(2)}}, data); diff != "" {
		t.Errorf("the data (-want +got):\n%s", diff)
	}
}

func TestToData(t *testing.T) {
	v := dictOf(
		Str("a"), listOf(None{}, Bool(true), NewInt(1), Float(1.5), integer("18446744073709551616")),
		Markup("b"), tupleOf(Str("x"), Markup("<y>")),
	)
	want := map[string]any{
		"a": []any{nil, true, int64(1), 1.5, json.Number("18446744073709551616")},
		"b": []any{"x", "<y>"},
	}
	got, err := ToData(ample(t), v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, v := range map[string]Value{
		"an undefined value": listOf(missingName), "a function": &Func{Type: "function"}, "bytes": Bytes("a"),
		"a number for a key": dictOf(NewInt(1), None{}),
	} {
		if got, err := ToData(ample(t), v); err == nil {
			t.Errorf("%s became %v", name, got)
		}
	}
}

func TestDecodeJSON(t *testing.T) {
	tests := map[string]struct {
		text string
		want any // nil means an error
	}{
		"an object in its order":       {`{"b": 1, "a": [true, null]}`, Object{{"b", int64(1)}, {"a", []any{true, nil}}}},
		"the last of members":          {`{"b": 1, "a": 2, "b": 3}`, Object{{"b", int64(3)}, {"a", int64(2)}}},
		"numbers":                      {`[-0, 1.0, 1e2, 18446744073709551616]`, []any{int64(0), 1.0, 100.0, json.Number("18446744073709551616")}},
		"a pair of surrogates":         {`"\ud83d\ude00\\ud83d"`, `😀\ud83d`},
		"half a pair of surrogates":    {`"\ud83d"`, nil},
		"half a pair before a letter":  {`"\ud83dx"`, nil},
		"half a pair before an escape": {`"\ud83d\u0041"`, nil},
		"the second half alone":        {`"\ude00"`, nil},
		"what is not UTF-8":            {"\"\xff\"", nil},
		"two values":                   {`1 2`, nil},
		"a bracket too many":           {`[1]]`, nil},
		"a bracket too few":            {`[1`, nil},
		"nothing":                      {``, nil},
		"no number":                    {`NaN`, nil},
		"an escape that is cut off":    {`"\u12`, nil},
		"deep nesting":                 {strings.Repeat("[", 1<<20), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeJSON([]byte(test.text))
			if (err != nil) != (test.want == nil) {
				t.Fatalf("got %v and %v", got, err)
			}
			if diff := cmp.Diff(test.want, got); err == nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
