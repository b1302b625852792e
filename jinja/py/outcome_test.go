package py

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// missingName is an undefined variable.
var missingName = &Undefined{Name: "missing"}

func listOf(items ...Value) *List { return &List{Items: items} }

func tupleOf(items ...Value) *Tuple { return &Tuple{Items: items} }

// dictOf returns a dictionary. entries are alternately keys and values.
func dictOf(entries ...Value) *Dict {
	dict := NewDict()
	for i := 0; i < len(entries); i += 2 {
		if err := dict.Set(entries[i], entries[i+1]); err != nil {
			panic(err)
		}
	}
	return dict
}

func integer(digits string) Int {
	n, _ := new(big.Int).SetString(digits, 10)
	return NewBigInt(n)
}

func pos(values ...Value) Args { return Args{Pos: values} }

// ample returns a budget that is larger than any ordinary operation needs.
func ample(t *testing.T) *Budget {
	t.Helper()
	return NewBudget(t.Context(), Limits{
		Steps: 1e8, Memory: 64 << 20, Text: 16 << 20, Depth: 200, Digits: 100000, Time: time.Minute,
	})
}

// outcome returns the output of python3: the repr of a value, or the name of an exception.
func outcome(t *testing.T, b *Budget, v Value, err error) string {
	t.Helper()
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Exception
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := Repr(b, v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type callTest struct {
	self   Value
	method string
	args   Args
	want   string
}

// checkCalls calls methods in the same way as templates do.
func checkCalls(t *testing.T, tests map[string]callTest) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			v, err := SandboxAttr(b, test.self, test.method)
			if err == nil {
				v, err = Call(b, v, test.args)
			}
			if diff := cmp.Diff(test.want, outcome(t, b, v, err)); diff != "" {
				t.Errorf("%s.%s(…) (-want +got):\n%s", test.self.TypeName(), test.method, diff)
			}
		})
	}
}
