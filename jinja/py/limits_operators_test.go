package py

import (
	"errors"
	"strings"
	"testing"
)

// TestHugeOperations checks that operators reject huge or deep results before they create them.
func TestHugeOperations(t *testing.T) {
	huge := NewInt(1 << 60)
	binary := func(x Value, op BinaryOp, y Value) func(b *Budget) error {
		return func(b *Budget) error {
			_, err := Binary(b, op, x, y)
			return err
		}
	}
	deep := func() Value {
		list := listOf()
		for range 100000 {
			list = listOf(list)
		}
		return list
	}
	x, y := deep(), deep()
	endless, other := listOf(None{}), listOf(None{})
	endless.Items[0], other.Items[0] = endless, other
	tests := map[string]func(b *Budget) error{
		"repeated text":                 binary(Str("ab"), OpMul, huge),
		"repeated markup":               binary(huge, OpMul, Markup("ab")),
		"repeated bytes":                binary(Bytes("ab"), OpMul, huge),
		"a repeated list":               binary(listOf(None{}, None{}), OpMul, huge),
		"a repeated tuple":              binary(huge, OpMul, tupleOf(None{})),
		"added text":                    binary(Str(strings.Repeat("a", 9<<20)), OpAdd, Str(strings.Repeat("a", 9<<20))),
		"a power":                       binary(NewInt(2), OpPow, NewInt(1e9)),
		"a power to the largest word":   binary(NewInt(2), OpPow, huge),
		"a power to a large number":     binary(NewInt(-2), OpPow, tenTo(30)),
		"a power of a large number":     binary(tenTo(1000), OpPow, NewInt(1000)),
		"a product":                     binary(tenTo(60000), OpMul, tenTo(60000)),
		"all of a range":                func(b *Budget) error { _, err := Collect(b, &Range{0, 1 << 62, 1}); return err },
		"what is not in a range":        func(b *Budget) error { _, err := anyMatches(b, indexed(1<<62, nothing), Str("")); return err },
		"the text of a deep list":       func(b *Budget) error { _, err := Repr(b, x); return err },
		"the data of a deep list":       func(b *Budget) error { _, err := ToData(b, x); return err },
		"equality of deep lists":        func(b *Budget) error { _, err := Equal(b, x, y); return err },
		"the order of deep lists":       func(b *Budget) error { _, err := Compare(b, OpLt, x, y); return err },
		"equality of endless lists":     func(b *Budget) error { _, err := Equal(b, endless, other); return err },
		"a deep list in another":        func(b *Budget) error { _, err := Contains(b, listOf(x), y); return err },
		"the text of lists that branch": func(b *Budget) error { _, err := Repr(b, branching()); return err },
		"the data of lists that branch": func(b *Budget) error { _, err := ToData(b, branching()); return err },
		"equality of lists that branch": func(b *Budget) error { _, err := Equal(b, branching(), branching()); return err },
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			b.Limits.Steps = 1e6
			if e, ok := errors.AsType[*Error](run(b)); !ok || e.Kind != Limit {
				t.Errorf("got %v, want an error of the limit", e)
			}
		})
	}
}

func nothing(int) Value { return None{} }

// branching returns a small list in memory with 2**60 empty lists at its lowest level.
func branching() Value {
	list := listOf()
	for range 60 {
		list = listOf(list, list)
	}
	return list
}

// TestComparingOnce checks that lists that differ at a deep level are not compared again at each level above it.
func TestComparingOnce(t *testing.T) {
	x, y := listOf(NewInt(1)), listOf(NewInt(2))
	for range 100 {
		x, y = listOf(x), listOf(y)
	}
	b := ample(t)
	if equal, err := Equal(b, x, y); err != nil || equal {
		t.Errorf("got %v and %v", equal, err)
	}
	if less, err := Compare(b, OpLt, x, y); err != nil || !less {
		t.Errorf("got %v and %v", less, err)
	}
}

// TestUndefinedMessages checks the error messages for undefined values.
func TestUndefinedMessages(t *testing.T) {
	tests := map[string]struct {
		u    *Undefined
		kind Kind
		want string
	}{
		"a variable":         {&Undefined{Name: "x"}, UndefinedUse, "'x' is undefined"},
		"a key":              {&Undefined{Name: "x", Object: dictOf()}, UndefinedUse, "'dict object' has no attribute 'x'"},
		"an attribute":       {&Undefined{Name: "x", Object: Str("")}, UndefinedUse, "'str object' has no attribute 'x'"},
		"of None":            {&Undefined{Name: "x", Object: None{}}, UndefinedUse, "'None' has no attribute 'x'"},
		"with a hint":        {&Undefined{Name: "x", Hint: "no x"}, UndefinedUse, "no x"},
		"what may not be so": {&Undefined{Name: "x", Hint: "x is unsafe", Unsafe: true}, Security, "x is unsafe"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, ok := errors.AsType[*Error](test.u.Err())
			if !ok || e.Kind != test.kind || e.Message != test.want {
				t.Errorf("got %v of kind %v, want %s", e, e.Kind, test.want)
			}
		})
	}
}
