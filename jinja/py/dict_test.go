package py

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDictKeys checks which keys are equal. The expected result is the text of a dictionary with both keys in python3.
func TestDictKeys(t *testing.T) {
	first, second := &Func{Name: "f", Type: "type"}, &Func{Name: "f", Type: "type"}
	tests := map[string]struct {
		x, y Value
		want string
	}{
		"numbers that are equal":        {NewInt(1), Float(1), "{1: 'y'}"},
		"a boolean and an integer":      {Bool(true), NewInt(1), "{True: 'y'}"},
		"large numbers that are equal":  {integer("1000000000000000000000000000000"), Float(1e30), "{1000000000000000000000000000000: 'x', 1e+30: 'y'}"},
		"large powers of two":           {integer("18446744073709551616"), Float(1 << 64), "{18446744073709551616: 'y'}"},
		"zeros":                         {Float(0), Float(math.Copysign(0, -1)), "{0.0: 'y'}"},
		"infinities":                    {Float(math.Inf(1)), Float(math.Inf(1)), "{inf: 'y'}"},
		"text and markup":               {Str("a"), Markup("a"), "{'a': 'y'}"},
		"text and bytes":                {Str("a"), Bytes("a"), "{'a': 'x', b'a': 'y'}"},
		"a number and its text":         {NewInt(1), Str("1"), "{1: 'x', '1': 'y'}"},
		"None and what is undefined":    {None{}, missingName, "{None: 'x', Undefined: 'y'}"},
		"what is undefined":             {missingName, &Undefined{Name: "other"}, "{Undefined: 'y'}"},
		"tuples that are equal":         {tupleOf(NewInt(1), Str("a")), tupleOf(Bool(true), Markup("a")), "{(1, 'a'): 'y'}"},
		"tuples with other parts":       {tupleOf(Str("a"), Str("b")), tupleOf(Str("ab")), "{('a', 'b'): 'x', ('ab',): 'y'}"},
		"tuples in tuples":              {tupleOf(tupleOf(None{})), tupleOf(tupleOf(None{})), "{((None,),): 'y'}"},
		"tuples of long text":           {tupleOf(Str(strings.Repeat("a", 200))), tupleOf(Str(strings.Repeat("a", 200))), "{('" + strings.Repeat("a", 200) + "',): 'y'}"},
		"ranges of the same":            {&Range{0, 3, 5}, &Range{0, 1, 7}, "{range(0, 3, 5): 'y'}"},
		"classes":                       {first, first, "{<class 'f'>: 'y'}"},
		"classes of the same name":      {first, second, "{<class 'f'>: 'x', <class 'f'>: 'y'}"},
		"classes in tuples":             {tupleOf(first), tupleOf(second), "{(<class 'f'>,): 'x', (<class 'f'>,): 'y'}"},
		"a tuple and its text as a key": {tupleOf(), Str(""), "{(): 'x', '': 'y'}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, outcome(t, ample(t), dictOf(test.x, Str("x"), test.y, Str("y")), nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnhashable(t *testing.T) {
	for name, v := range map[string]Value{
		"list": listOf(), "dict": dictOf(), "slice": &SliceKey{},
		"dict_keys": keysOf(), "dict_items": pairsOf(),
	} {
		want := fmt.Sprintf("unhashable type: '%s'", name)
		for _, key := range []Value{v, tupleOf(NewInt(1), v)} {
			if err := Hashable(key); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
	if err := Hashable(valuesOf()); err != nil {
		t.Error(err)
	}
}

// TestManyKeys checks that a dictionary with many keys keeps its order and finds all keys.
func TestManyKeys(t *testing.T) {
	const many = 1000
	d := NewDict()
	for i := range many {
		for _, key := range []Value{NewInt(int64(i)), Str(fmt.Sprint(i))} {
			if err := d.Set(key, key); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A change of the copy does not change the original.
	changed := d.Copy()
	changed.SetStr("0", None{})
	changed.SetStr("new", None{})
	for i := range many {
		key, value := d.Entry(2*i + 1)
		if want := Str(fmt.Sprint(i)); key != want || value != want {
			t.Errorf("entry %d is %v: %v, want %v twice", i, key, value, want)
		}
		if v, ok, err := d.Get(Float(i)); err != nil || !ok || v != NewInt(int64(i)) {
			t.Errorf("%d.0 has %v, %v and %v", i, v, ok, err)
		}
	}
	if _, ok := d.GetStr("new"); ok || d.Len() != 2*many {
		t.Errorf("the dictionary has been changed with its copy")
	}
}

// TestKeysOfTuples checks that a tuple that would take too long to hash is rejected as a key, even if it is small in
// memory.
func TestKeysOfTuples(t *testing.T) {
	doubled, deep := tupleOf(), tupleOf()
	for range 60 {
		doubled = tupleOf(doubled, doubled)
	}
	for range 100000 {
		deep = tupleOf(deep)
	}
	for name, key := range map[string]Value{
		"doubled": doubled, "deep": deep, "long": tupleOf(Str(strings.Repeat("a", 1<<20))),
	} {
		t.Run(name, func(t *testing.T) {
			if e, ok := errors.AsType[*Error](Hashable(key)); !ok || e.Kind != Limit {
				t.Errorf("got %v, want an error of the limit", e)
			}
		})
	}
}
