package py

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompare compares the comparisons with the results of python3.
func TestCompare(t *testing.T) {
	tests := map[string]struct {
		x    Value
		op   CompareOp
		y    Value
		want string
	}{
		"a boolean is an integer":                   {Bool(true), OpEq, NewInt(1), "True"},
		"an integer is a float":                     {NewInt(1), OpEq, Float(1.0), "True"},
		"a large integer is exact":                  {NewInt(9007199254740993), OpEq, Float(9007199254740992.0), "False"},
		"and ordered exactly":                       {NewInt(9007199254740993), OpGt, Float(9007199254740992.0), "True"},
		"beyond floats":                             {tenTo(400), OpLt, Float(math.Inf(1)), "True"},
		"below infinity":                            {minusTenTo(400), OpGt, Float(math.Inf(-1)), "True"},
		"nothing is ordered with what is no number": {NewInt(1), OpLt, Float(math.NaN()), "False"},
		"nor equal":                                 {Float(math.NaN()), OpEq, Float(math.NaN()), "False"},
		"but different":                             {tenTo(400), OpNe, Float(math.NaN()), "True"},
		"minus zero is zero":                        {Float(math.Copysign(0, -1)), OpEq, NewInt(0), "True"},
		"text by code point":                        {Str("\uffff"), OpLt, Str("𐀀"), "True"},
		"a beginning is less":                       {Str("ab"), OpLt, Str("abc"), "True"},
		"markup is text":                            {Markup("a"), OpEq, Str("a"), "True"},
		"text is not bytes":                         {Str("a"), OpEq, Bytes("a"), "False"},
		"bytes":                                     {Bytes("a"), OpLt, Bytes("b"), "True"},
		"lists by their first difference":           {listOf(NewInt(1), NewInt(2), NewInt(3)), OpLt, listOf(NewInt(1), NewInt(3)), "True"},
		"a shorter list":                            {listOf(NewInt(1)), OpLt, listOf(NewInt(1), NewInt(0)), "True"},
		"a list is no tuple":                        {listOf(NewInt(1)), OpEq, tupleOf(NewInt(1)), "False"},
		"a list and a tuple have no order":          {listOf(NewInt(1)), OpLt, tupleOf(NewInt(1)), "TypeError"},
		"items without an order":                    {listOf(NewInt(1)), OpLt, listOf(Str("a")), "TypeError"},
		"unless they are equal":                     {listOf(None{}), OpLe, listOf(None{}), "True"},
		"tuples":                                    {tupleOf(NewInt(1), NewInt(2)), OpGe, tupleOf(NewInt(1), NewInt(2)), "True"},
		"dictionaries regardless of order":          {dictOf(Str("a"), NewInt(1), Str("b"), Float(2.0)), OpEq, dictOf(Str("b"), NewInt(2), Str("a"), Bool(true)), "True"},
		"dictionaries with other values":            {dictOf(Str("a"), NewInt(1)), OpEq, dictOf(Str("a"), NewInt(2)), "False"},
		"dictionaries with other keys":              {dictOf(Str("a"), NewInt(1)), OpEq, dictOf(Str("b"), NewInt(1)), "False"},
		"dictionaries have no order":                {dictOf(), OpLt, dictOf(), "TypeError"},
		"keys are a set":                            {keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), OpEq, keysOf(Str("b"), NewInt(3), Str("a"), NewInt(4)), "True"},
		"keys are a smaller set":                    {keysOf(Str("a"), NewInt(1)), OpLt, keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "True"},
		"keys are no smaller set":                   {keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), OpLt, keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "False"},
		"keys are a part":                           {keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), OpLe, keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "True"},
		"keys are a larger set":                     {keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), OpGt, keysOf(Str("b"), NewInt(0)), "True"},
		"more keys than items":                      {keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), OpLe, pairsOf(Str("a"), listOf()), "False"},
		"items are a set":                           {pairsOf(Str("a"), listOf(NewInt(1))), OpEq, pairsOf(Str("a"), listOf(NewInt(1))), "True"},
		"items with other values":                   {pairsOf(Str("a"), listOf(NewInt(1))), OpNe, pairsOf(Str("a"), listOf(NewInt(2))), "True"},
		"values are no set":                         {valuesOf(Str("a"), NewInt(1)), OpEq, valuesOf(Str("a"), NewInt(1)), "False"},
		"values have no order":                      {valuesOf(Str("a"), NewInt(1)), OpLt, valuesOf(Str("a"), NewInt(1)), "TypeError"},
		"keys are no list":                          {keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), OpEq, listOf(Str("a"), Str("b")), "False"},
		"ranges by what is in them":                 {&Range{0, 3, 5}, OpEq, &Range{0, 1, 7}, "True"},
		"empty ranges":                              {&Range{0, 0, 1}, OpEq, &Range{5, 1, 1}, "True"},
		"ranges have no order":                      {&Range{0, 1, 1}, OpLt, &Range{0, 2, 1}, "TypeError"},
		"other ranges":                              {&Range{0, 3, 1}, OpEq, &Range{0, 4, 1}, "False"},
		"None is None":                              {None{}, OpEq, None{}, "True"},
		"None is not zero":                          {None{}, OpEq, NewInt(0), "False"},
		"None has no order":                         {None{}, OpLt, None{}, "TypeError"},
		"undefined is undefined":                    {missingName, OpEq, missingName, "True"},
		"and nothing else":                          {missingName, OpEq, None{}, "False"},
		"a number and text have no order":           {NewInt(1), OpLt, Str("a"), "TypeError"},
		"a number and text differ":                  {NewInt(1), OpNe, Str("1"), "True"},
		"the order of what is undefined":            {missingName, OpLt, NewInt(1), "UndefinedError"},
		"and on the right":                          {NewInt(1), OpGe, missingName, "UndefinedError"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			got, err := Compare(b, test.op, test.x, test.y)
			if diff := cmp.Diff(test.want, outcome(t, b, Bool(got), err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestContains(t *testing.T) {
	tests := map[string]struct {
		item, container Value
		want            string
	}{
		"a part of text":                   {Str("fé"), Str("caféé"), "True"},
		"nothing is in all text":           {Str(""), Str(""), "True"},
		"a number in text":                 {NewInt(1), Str("1"), "TypeError"},
		"what is undefined in text":        {missingName, Str("a"), "TypeError"},
		"markup in text":                   {Markup("a"), Str("abc"), "True"},
		"a number that is equal in a list": {NewInt(1), listOf(Bool(true)), "True"},
		"None in a tuple":                  {None{}, tupleOf(NewInt(1), None{}), "True"},
		"a list in a list":                 {listOf(NewInt(1)), listOf(listOf(NewInt(1))), "True"},
		"text in a list":                   {Str("a"), listOf(Str("ab")), "False"},
		"a key":                            {Str("a"), dictOf(Str("a"), NewInt(1)), "True"},
		"a value is no key":                {NewInt(1), dictOf(Str("a"), NewInt(1)), "False"},
		"a number that is equal as a key":  {Float(1.0), dictOf(NewInt(1), NewInt(2)), "True"},
		"a list as a key":                  {listOf(), dictOf(), "TypeError"},
		"a tuple with a list as a key":     {tupleOf(NewInt(1), listOf()), dictOf(), "TypeError"},
		"a key among keys":                 {Str("a"), keysOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "True"},
		"a value among values":             {NewInt(2), valuesOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "True"},
		"a pair among items":               {tupleOf(Str("a"), NewInt(1)), pairsOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "True"},
		"a list among items":               {listOf(Str("a"), NewInt(1)), pairsOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "False"},
		"another pair among items":         {tupleOf(Str("a"), NewInt(2)), pairsOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "False"},
		"a list as the key of a pair":      {tupleOf(listOf(), NewInt(1)), pairsOf(Str("a"), NewInt(1), Str("b"), NewInt(2)), "TypeError"},
		"a float in a range":               {Float(2.0), &Range{0, 5, 1}, "True"},
		"a float between those of a range": {Float(2.5), &Range{0, 5, 1}, "False"},
		"what a range steps over":          {NewInt(3), &Range{0, 10, 2}, "False"},
		"a range downwards":                {NewInt(3), &Range{5, 0, -2}, "True"},
		"text in a range":                  {Str("a"), &Range{0, 3, 1}, "False"},
		"a large number in a range":        {tenTo(30), &Range{0, 3, 1}, "False"},
		"a byte":                           {NewInt(97), Bytes("abc"), "True"},
		"bytes in bytes":                   {Bytes("bc"), Bytes("abc"), "True"},
		"what is no byte":                  {NewInt(256), Bytes("a"), "ValueError"},
		"text in bytes":                    {Str("a"), Bytes("a"), "TypeError"},
		"in what is undefined":             {NewInt(1), missingName, "False"},
		"in a number":                      {NewInt(1), NewInt(1), "TypeError"},
		"in None":                          {None{}, None{}, "TypeError"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			got, err := Contains(b, test.container, test.item)
			if diff := cmp.Diff(test.want, outcome(t, b, Bool(got), err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func keysOf(entries ...Value) *DictView { return &DictView{dictOf(entries...), "dict_keys"} }

func valuesOf(entries ...Value) *DictView { return &DictView{dictOf(entries...), "dict_values"} }

func pairsOf(entries ...Value) *DictView { return &DictView{dictOf(entries...), "dict_items"} }

// TestContainsTakes checks that a search in an iterator consumes all items up to the found one.
func TestContainsTakes(t *testing.T) {
	b := ample(t)
	rest := listOf(NewInt(1), NewInt(2), NewInt(3))
	generator := &Generator{Type: "generator", Fn: func(*Budget) (Value, bool, error) {
		first := rest.Items[0]
		rest.Items = rest.Items[1:]
		return first, true, nil
	}}
	got, err := Contains(b, generator, NewInt(2))
	if err != nil || !got {
		t.Errorf("got %v and %v, want it to be found", got, err)
	}
	if diff := cmp.Diff("[3]", outcome(t, b, rest, nil)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestSameNaN checks that a NaN is equal only to itself: a container finds the same NaN, and no other one.
func TestSameNaN(t *testing.T) {
	b := ample(t)
	one, err := ToFloat(b, Str("nan"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Binary(b, OpSub, Float(math.Inf(1)), Float(math.Inf(1)))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		container, item Value
		want            bool
	}{
		"itself in a list":          {listOf(one), one, true},
		"another in a list":         {listOf(one), other, false},
		"itself as a key":           {dictOf(one, None{}), one, true},
		"another as a key":          {dictOf(one, None{}), other, false},
		"itself in a key":           {dictOf(tupleOf(one), None{}), tupleOf(one), true},
		"another in a key":          {dictOf(tupleOf(one), None{}), tupleOf(other), false},
		"its negative is another":   {listOf(one), negative(t, b, one), false},
		"itself deeper in a list":   {listOf(listOf(one)), listOf(one), true},
		"another deeper in a list ": {listOf(listOf(one)), listOf(other), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := Contains(b, test.container, test.item); err != nil || got != test.want {
				t.Errorf("got %v and %v, want %v", got, err, test.want)
			}
		})
	}
}

func negative(t *testing.T, b *Budget, v Value) Value {
	t.Helper()
	v, err := Negative(b, v)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
