package py

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestItem compares obj[key] with the results of python3.
func TestItem(t *testing.T) {
	tests := map[string]struct {
		obj, key Value
		want     string
	}{
		"from the beginning":          {listOf(NewInt(1), NewInt(2), NewInt(3)), NewInt(0), "1"},
		"from the end":                {listOf(NewInt(1), NewInt(2), NewInt(3)), NewInt(-1), "3"},
		"beyond the end":              {listOf(NewInt(1), NewInt(2), NewInt(3)), NewInt(3), "IndexError"},
		"before the beginning":        {listOf(NewInt(1), NewInt(2), NewInt(3)), NewInt(-4), "IndexError"},
		"by a boolean":                {listOf(NewInt(1), NewInt(2), NewInt(3)), Bool(true), "2"},
		"far beyond":                  {listOf(NewInt(1), NewInt(2), NewInt(3)), tenTo(30), "IndexError"},
		"by text":                     {listOf(NewInt(1), NewInt(2), NewInt(3)), Str("a"), "TypeError"},
		"by a float":                  {listOf(NewInt(1), NewInt(2), NewInt(3)), Float(1.0), "TypeError"},
		"by what is undefined":        {listOf(NewInt(1), NewInt(2), NewInt(3)), missingName, "TypeError"},
		"a part":                      {listOf(NewInt(1), NewInt(2), NewInt(3)), &SliceKey{NewInt(1), nil, nil}, "[2, 3]"},
		"a part from the end":         {listOf(NewInt(1), NewInt(2), NewInt(3)), &SliceKey{NewInt(-2), NewInt(-1), nil}, "[2]"},
		"backwards":                   {listOf(NewInt(1), NewInt(2), NewInt(3)), &SliceKey{nil, nil, NewInt(-1)}, "[3, 2, 1]"},
		"by steps":                    {listOf(NewInt(1), NewInt(2), NewInt(3)), &SliceKey{nil, nil, NewInt(2)}, "[1, 3]"},
		"far beyond both ends":        {listOf(NewInt(1), NewInt(2), NewInt(3)), &SliceKey{minusTenTo(30), tenTo(30), tenTo(30)}, "[1]"},
		"a part without a step":       {listOf(NewInt(1), NewInt(2), NewInt(3)), &SliceKey{nil, nil, NewInt(0)}, "ValueError"},
		"a part by text":              {listOf(NewInt(1), NewInt(2), NewInt(3)), &SliceKey{Str("a"), nil, nil}, "TypeError"},
		"a part by booleans":          {listOf(NewInt(1), NewInt(2), NewInt(3)), &SliceKey{Bool(true), nil, nil}, "[2, 3]"},
		"a tuple":                     {tupleOf(NewInt(1), NewInt(2)), NewInt(-1), "2"},
		"a part of a tuple":           {tupleOf(NewInt(1), NewInt(2)), &SliceKey{NewInt(0), NewInt(1), nil}, "(1,)"},
		"a character":                 {Str("añb"), NewInt(1), "'ñ'"},
		"a character from the end":    {Str("añb"), NewInt(-1), "'b'"},
		"a part of text":              {Str("añbñ"), &SliceKey{NewInt(1), NewInt(3), nil}, "'ñb'"},
		"text backwards":              {Str("añ😀"), &SliceKey{nil, nil, NewInt(-1)}, "'😀ña'"},
		"text by steps":               {Str("añbñ"), &SliceKey{NewInt(0), nil, NewInt(2)}, "'ab'"},
		"beyond text":                 {Str("a"), NewInt(1), "IndexError"},
		"text by text":                {Str("a"), Str("a"), "TypeError"},
		"text without a step":         {Str("a"), &SliceKey{nil, nil, NewInt(0)}, "ValueError"},
		"a character of markup":       {Markup("<b>"), NewInt(0), "Markup('<')"},
		"a part of markup":            {Markup("<b>"), &SliceKey{NewInt(1), NewInt(2), nil}, "Markup('b')"},
		"a byte":                      {Bytes("a\xff"), NewInt(1), "255"},
		"a part of bytes":             {Bytes("abc"), &SliceKey{nil, nil, NewInt(-1)}, "b'cba'"},
		"bytes by text":               {Bytes("a"), Str("a"), "TypeError"},
		"a range":                     {&Range{5, 0, -2}, NewInt(-1), "1"},
		"a part of a range":           {&Range{0, 10, 1}, &SliceKey{NewInt(2), nil, NewInt(3)}, "range(2, 10, 3)"},
		"a range backwards":           {&Range{0, 5, 1}, &SliceKey{nil, nil, NewInt(-1)}, "range(4, -1, -1)"},
		"an empty part of a range":    {&Range{0, 10, 1}, &SliceKey{NewInt(5), NewInt(2), nil}, "range(5, 2)"},
		"beyond a range":              {&Range{0, 3, 1}, NewInt(3), "IndexError"},
		"a key":                       {dictOf(Str("a"), NewInt(1)), Str("a"), "1"},
		"a key that is equal":         {dictOf(NewInt(1), NewInt(2)), Bool(true), "2"},
		"no key":                      {dictOf(Str("a"), NewInt(1)), Str("b"), "KeyError"},
		"a list as a key":             {dictOf(), listOf(), "TypeError"},
		"a slice as a key":            {dictOf(), &SliceKey{NewInt(1), nil, nil}, "TypeError"},
		"a large key":                 {dictOf(tenTo(30), NewInt(1)), Float(1e+30), "KeyError"},
		"a key that is a whole float": {dictOf(Float(2.0), NewInt(1)), NewInt(2), "1"},
		"a tuple as a key":            {dictOf(tupleOf(NewInt(1), Str("a")), NewInt(1)), tupleOf(Float(1.0), Markup("a")), "1"},
		"None as a key":               {dictOf(None{}, NewInt(1)), None{}, "1"},
		"a number":                    {NewInt(5), NewInt(0), "TypeError"},
		"None":                        {None{}, Str("a"), "TypeError"},
		"keys":                        {keysOf(Str("a"), NewInt(1)), NewInt(0), "TypeError"},
		"what is undefined":           {missingName, Str("a"), "UndefinedError"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			got, err := Item(b, test.obj, test.key)
			if diff := cmp.Diff(test.want, outcome(t, b, got, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
