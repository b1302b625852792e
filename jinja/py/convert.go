package py

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// ToInt returns int(v).
func ToInt(b *Budget, v Value) (Int, error) {
	if i, ok := asInt(v); ok {
		return i, nil
	}
	if text, ok := TextOf(v); ok {
		return ParseInt(b, text, 10)
	}
	switch v := v.(type) {
	case Float:
		return truncate(float64(v))
	case Bytes:
		return ParseInt(b, v.digits(), 10)
	case *Undefined:
		return Int{}, v.Err()
	}
	return Int{}, typeError("int() argument must be a string, a bytes-like object or a real number, not '%s'", v.TypeName())
}

// digits returns the bytes as text of a number: only ASCII bytes are digits or whitespace in it.
func (text Bytes) digits() string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return utf8.RuneError
		}
		return r
	}, string(text))
}

func truncate(f float64) (Int, error) {
	if math.IsNaN(f) {
		return Int{}, valueError("cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		return Int{}, exception("OverflowError", "cannot convert float infinity to integer")
	}
	n, _ := big.NewFloat(f).Int(nil)
	return NewBigInt(n), nil
}

// ToFloat returns float(v).
func ToFloat(b *Budget, v Value) (Float, error) {
	if isNumber(v) {
		f, err := asFloat(v)
		return Float(f), err
	}
	if text, ok := TextOf(v); ok {
		return parseFloat(b, text)
	}
	switch v := v.(type) {
	case Bytes:
		return parseFloat(b, v.digits())
	case *Undefined:
		return 0, v.Err()
	}
	return 0, typeError("float() argument must be a string or a real number, not '%s'", v.TypeName())
}

func parseFloat(b *Budget, text string) (Float, error) {
	if err := b.Step(len(text)/bytesPerStep + 1); err != nil {
		return 0, err
	}
	f, err := ParseFloat(text)
	return b.float(float64(f)), err
}

// Lengther is a Value that has a length, besides the kinds of this package.
type Lengther interface {
	Value
	Len(b *Budget) (int, error)
}

// Len returns len(v).
func Len(b *Budget, v Value) (int, error) {
	if text, ok := TextOf(v); ok {
		return runeCount(text), b.Step(len(text)/bytesPerStep + 1)
	}
	switch v := v.(type) {
	case Bytes:
		return len(v), nil
	case *List:
		return len(v.Items), nil
	case *Tuple:
		return len(v.Items), nil
	case *Dict:
		return v.Len(), nil
	case *DictView:
		return v.Dict.Len(), nil
	case *Range:
		return v.Len(), nil
	case *Undefined:
		return 0, nil
	case Lengther:
		return v.Len(b)
	}
	return 0, typeError("object of type '%s' has no len()", v.TypeName())
}

// Truth returns bool(v): empty, zero, None and undefined values are false.
func Truth(b *Budget, v Value) (bool, error) {
	switch v := v.(type) {
	case Bool:
		return bool(v), nil
	case None:
		return false, nil
	case Int:
		return v.Sign() != 0, nil
	case Float:
		return v != 0, nil
	case Str:
		return v != "", nil
	case Markup:
		return v != "", nil
	case Bytes, *List, *Tuple, *Dict, *DictView, *Range, *Undefined, Lengther:
		n, err := Len(b, v)
		return n > 0, err
	}
	return true, nil
}

// Call calls v.
func Call(b *Budget, v Value, args Args) (Value, error) {
	if err := b.Step(1); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case Callable:
		return v.Call(b, args)
	case *Undefined:
		return nil, v.Err()
	}
	return nil, typeError("'%s' object is not callable", v.TypeName())
}

// runeCount returns how many code points a text has.
func runeCount(text string) int { return utf8.RuneCountInString(text) }
