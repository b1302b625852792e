package py

import (
	"cmp"
	"math"
	"strings"
)

// CompareOp is a comparison.
type CompareOp int

// The comparisons.
const (
	OpEq CompareOp = iota
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
)

var compareSigns = [...]string{OpEq: "==", OpNe: "!=", OpLt: "<", OpLe: "<=", OpGt: ">", OpGe: ">="}

// holds reports whether op is true for two values of the order.
func (op CompareOp) holds(order int) bool {
	switch op {
	case OpEq:
		return order == 0
	case OpNe:
		return order != 0
	case OpLt:
		return order < 0
	case OpLe:
		return order <= 0
	case OpGt:
		return order > 0
	default:
		return order >= 0
	}
}

// Compare returns x op y.
func Compare(b *Budget, op CompareOp, x, y Value) (bool, error) {
	if err := b.Step(1); err != nil {
		return false, err
	}
	if op == OpEq || op == OpNe {
		equal, err := Equal(b, x, y)
		return equal == (op == OpEq), err
	}
	for _, v := range []Value{x, y} {
		if u, ok := v.(*Undefined); ok {
			return false, u.Err()
		}
	}
	if isNumber(x) && isNumber(y) {
		order, ordered := compareNumbers(x, y)
		return ordered && op.holds(order), nil
	}
	if s, ok := TextOf(x); ok {
		if t, ok := TextOf(y); ok {
			// The order of UTF-8 is that of its code points.
			return op.holds(strings.Compare(s, t)), b.Step(min(len(s), len(t))/bytesPerStep + 1)
		}
	}
	return compareParts(b, op, x, y)
}

func compareParts(b *Budget, op CompareOp, x, y Value) (bool, error) {
	switch v := x.(type) {
	case Bytes:
		if w, ok := y.(Bytes); ok {
			return op.holds(cmp.Compare(v, w)), nil
		}
	case *List:
		if w, ok := y.(*List); ok {
			return compareItems(b, op, v.Items, w.Items)
		}
	case *Tuple:
		if w, ok := y.(*Tuple); ok {
			return compareItems(b, op, v.Items, w.Items)
		}
	case *DictView:
		if w, ok := y.(*DictView); ok && v.isSet() && w.isSet() {
			return v.compare(b, op, w)
		}
	}
	return false, typeError("'%s' not supported between instances of '%s' and '%s'", compareSigns[op], x.TypeName(), y.TypeName())
}

// compareNumbers returns the order of two numbers, and whether they have one: NaN has none.
func compareNumbers(x, y Value) (order int, ordered bool) {
	i, iok := asInt(x)
	j, jok := asInt(y)
	f, _ := x.(Float)
	g, _ := y.(Float)
	switch {
	case iok && jok:
		return i.compare(j), true
	case math.IsNaN(float64(f)) || math.IsNaN(float64(g)):
		return 0, false
	case iok:
		return compareIntFloat(i, float64(g)), true
	case jok:
		return -compareIntFloat(j, float64(f)), true
	}
	return cmp.Compare(f, g), true
}

// compareItems compares the first items that differ, or else the lengths.
func compareItems(b *Budget, op CompareOp, x, y []Value) (bool, error) {
	if err := b.Enter(); err != nil {
		return false, err
	}
	defer b.Leave()
	for i := range min(len(x), len(y)) {
		same, err := matches(b, x[i], y[i])
		if err != nil {
			return false, err
		}
		if !same && op == OpEq {
			return false, nil
		}
		if !same {
			return Compare(b, op, x[i], y[i])
		}
	}
	return op.holds(cmp.Compare(len(x), len(y))), nil
}

// Equal returns x == y.
func Equal(b *Budget, x, y Value) (bool, error) {
	if err := b.Step(1); err != nil {
		return false, err
	}
	if isNumber(x) && isNumber(y) {
		order, ordered := compareNumbers(x, y)
		return ordered && order == 0, nil
	}
	if s, ok := TextOf(x); ok {
		t, ok := TextOf(y)
		return ok && s == t, b.Step(len(s)/(bytesPerStep*bytesPerStep) + 1)
	}
	return equalParts(b, x, y)
}

// equalParts compares values with parts by their parts, and others by identity.
func equalParts(b *Budget, x, y Value) (bool, error) {
	switch v := x.(type) {
	case *List:
		if w, ok := y.(*List); ok {
			return equalItems(b, v.Items, w.Items)
		}
	case *Tuple:
		if w, ok := y.(*Tuple); ok {
			return equalItems(b, v.Items, w.Items)
		}
	case *Dict:
		if w, ok := y.(*Dict); ok {
			return equalDicts(b, v, w)
		}
	case *DictView:
		if w, ok := y.(*DictView); ok {
			return v.equal(b, w)
		}
	case *Range:
		w, ok := y.(*Range)
		return ok && v.hash() == w.hash(), nil
	case *Undefined:
		_, ok := y.(*Undefined)
		return ok, nil
	case *Func:
		if w, ok := y.(*Func); ok && v != w && v.Self != nil && w.Self != nil {
			return equalMethods(v, w)
		}
	}
	return Same(x, y), nil
}

// equalMethods compares methods, which are equal in Python if they are the same one of the same object. Equal texts and numbers
// may be one object there or two, so a comparison that depends on it is refused.
func equalMethods(x, y *Func) (bool, error) {
	if x.Name != y.Name || x.Self.TypeName() != y.Self.TypeName() || !Same(x.Self, y.Self) {
		return false, nil
	}
	switch x.Self.(type) {
	case *List, *Dict, *Tuple, *Range, *DictView, *Generator, *Undefined:
		return true, nil
	}
	return false, exception("NotImplementedError", "a comparison of the method '%s' of two equal values is not supported", x.Name)
}

func equalItems(b *Budget, x, y []Value) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	return compareItems(b, OpEq, x, y)
}

func equalDicts(b *Budget, x, y *Dict) (bool, error) {
	if x.Len() != y.Len() {
		return false, nil
	}
	if err := b.Enter(); err != nil {
		return false, err
	}
	defer b.Leave()
	for i := range x.entries {
		value, ok := y.get(x.entries[i].hash)
		if !ok {
			return false, nil
		}
		if same, err := matches(b, x.entries[i].value, value); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// Same returns x is y. Equal values without parts are the same, which Python does not specify.
func Same(x, y Value) bool {
	if _, ok := x.(Int); !ok {
		if f, ok := x.(Float); ok {
			g, ok := y.(Float)
			return ok && math.Float64bits(float64(f)) == math.Float64bits(float64(g))
		}
		return x == y
	}
	i, _ := x.(Int)
	j, ok := y.(Int)
	return ok && i.compare(j) == 0
}
