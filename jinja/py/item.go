package py

import (
	"strings"
	"unicode/utf8"
)

// Item returns obj[key]; key may be a *SliceKey.
func Item(b *Budget, obj, key Value) (Value, error) {
	if err := b.Step(1); err != nil {
		return nil, err
	}
	if text, ok := TextOf(obj); ok {
		return textItem(b, obj, text, key)
	}
	switch v := obj.(type) {
	case *Dict:
		return dictItem(v, key)
	case *List:
		return sequenceItem(b, "list", v.Items, key, func(items []Value) Value { return &List{Items: items} })
	case *Tuple:
		return sequenceItem(b, "tuple", v.Items, key, func(items []Value) Value { return &Tuple{Items: items} })
	case *Range:
		return rangeItem(v, key)
	case Bytes:
		return bytesItem(b, v, key)
	case *Undefined:
		return nil, v.Err()
	case *Func:
		if v.Type == "type" && v.Name == "dict" {
			return genericAlias(b, v, key)
		}
	}
	return nil, typeError("'%s' object is not subscriptable", obj.TypeName())
}

// genericAlias returns a type with a parameter, dict['x'], which can be called like the type.
func genericAlias(b *Budget, v *Func, key Value) (Value, error) {
	text, err := Repr(b, key)
	if t, ok := key.(*Tuple); ok && len(t.Items) > 0 {
		text = strings.TrimSuffix(text[1:max(len(text)-1, 1)], ",")
	}
	return &Func{Name: v.Name + "[" + text + "]", Type: "GenericAlias", Fn: v.Fn}, err
}

func dictItem(d *Dict, key Value) (Value, error) {
	value, ok, err := d.Get(key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, exception("KeyError", "the key is not in the dictionary")
	}
	return value, nil
}

// position returns the index that a key means in a sequence of n: from the end if it is negative.
func position(kind string, key Value, n int) (int, error) {
	i, ok := asInt(key)
	if !ok {
		return 0, noIndex(kind, key)
	}
	at, small := i.Int64()
	if !small && kind != "range" {
		return 0, exception("IndexError", "cannot fit 'int' into an index-sized integer")
	}
	if at < 0 {
		at += int64(n)
	}
	if !small || at < 0 || at >= int64(n) {
		return 0, exception("IndexError", "%s", outOfRange[kind])
	}
	return int(at), nil
}

var outOfRange = map[string]string{
	"list":   "list index out of range",
	"tuple":  "tuple index out of range",
	"string": "string index out of range",
	"range":  "range object index out of range",
	"byte":   "index out of range",
}

func noIndex(kind string, key Value) error {
	if kind == "string" {
		return typeError("string indices must be integers, not '%s'", key.TypeName())
	}
	return typeError("%s indices must be integers or slices, not %s", kind, key.TypeName())
}

func sequenceItem(b *Budget, kind string, items []Value, key Value, part func(items []Value) Value) (Value, error) {
	slice, ok := key.(*SliceKey)
	if !ok {
		at, err := position(kind, key, len(items))
		if err != nil {
			return nil, err
		}
		return items[at], nil
	}
	places, err := slice.places(len(items))
	if err != nil {
		return nil, err
	}
	if err := b.Alloc(places.n * itemSize); err != nil {
		return nil, err
	}
	chosen := make([]Value, places.n)
	for i := range chosen {
		chosen[i] = items[places.at(i)]
	}
	return part(chosen), nil
}

func rangeItem(r *Range, key Value) (Value, error) {
	slice, ok := key.(*SliceKey)
	if !ok {
		at, err := position("range", key, r.Len())
		if err != nil {
			return nil, err
		}
		return r.at(at), nil
	}
	places, err := slice.places(r.Len())
	if err != nil {
		return nil, err
	}
	step, ok := multiplySmall(r.Step, int64(places.step))
	if !ok || max(places.step, -places.step) == farthest {
		return nil, exception("OverflowError", "the step of the range is too large")
	}
	return &Range{
		Start: r.Start + int64(places.start)*r.Step,
		Stop:  r.Start + int64(places.stop)*r.Step,
		Step:  step,
	}, nil
}

func bytesItem(b *Budget, text Bytes, key Value) (Value, error) {
	slice, ok := key.(*SliceKey)
	if !ok {
		at, err := position("byte", key, len(text))
		if err != nil {
			return nil, err
		}
		return Int{small: int64(text[at])}, nil
	}
	places, err := slice.places(len(text))
	if err != nil {
		return nil, err
	}
	if err := b.Text(places.n); err != nil {
		return nil, err
	}
	chosen := make([]byte, places.n)
	for i := range chosen {
		chosen[i] = text[places.at(i)]
	}
	return Bytes(chosen), nil
}

// textItem returns a character or a part of text; of Markup, it is Markup again.
func textItem(b *Budget, obj Value, text string, key Value) (Value, error) {
	n := runeCount(text)
	if err := b.Step(len(text)/bytesPerStep + 1); err != nil {
		return nil, err
	}
	slice, ok := key.(*SliceKey)
	if !ok {
		at, err := position("string", key, n)
		if err != nil {
			return nil, err
		}
		start := byteOffset(text, at)
		_, size := utf8.DecodeRuneInString(text[start:])
		return like(obj, text[start:start+size]), nil
	}
	places, err := slice.places(n)
	if err != nil {
		return nil, err
	}
	if places.step == 1 {
		start := byteOffset(text, places.start)
		return like(obj, text[start:start+byteOffset(text[start:], places.n)]), nil
	}
	if err := b.Text(len(text)); err != nil {
		return nil, err
	}
	runes := []rune(text)
	chosen := make([]rune, places.n)
	for i := range chosen {
		chosen[i] = runes[places.at(i)]
	}
	return like(obj, string(chosen)), nil
}

func like(obj Value, text string) Value {
	if _, ok := obj.(Markup); ok {
		return Markup(text)
	}
	return Str(text)
}

// places are the indexes that a slice selects: n of them, from start by step.
type places struct{ start, stop, step, n int }

func (p places) at(i int) int { return p.start + i*p.step }

// places returns the indexes that k selects in a sequence of a length, as slice.indices does.
func (k *SliceKey) places(length int) (places, error) {
	step, err := sliceBound(k.Step, 1)
	if err != nil {
		return places{}, err
	}
	if step == 0 {
		return places{}, valueError("slice step cannot be zero")
	}
	low, high := 0, length
	if step < 0 {
		low, high = -1, length-1
	}
	first, last := low, high
	if step < 0 {
		first, last = high, low
	}
	p := places{step: step}
	if p.start, err = k.bound(k.Start, first, low, high, length); err != nil {
		return places{}, err
	}
	if p.stop, err = k.bound(k.Stop, last, low, high, length); err != nil {
		return places{}, err
	}
	switch {
	case step > 0 && p.start < p.stop:
		p.n = (p.stop-p.start-1)/step + 1
	case step < 0 && p.start > p.stop:
		p.n = (p.start-p.stop-1)/-step + 1
	}
	return p, nil
}

func (*SliceKey) bound(v Value, absent, low, high, length int) (int, error) {
	if isAbsent(v) {
		return absent, nil
	}
	bound, err := sliceBound(v, absent)
	if err != nil {
		return 0, err
	}
	if bound < 0 {
		bound += length
	}
	return min(max(bound, low), high), nil
}

func isAbsent(v Value) bool {
	_, none := v.(None)
	return none || v == nil
}

// farthest is beyond the end of any sequence, and does not overflow.
const farthest = 1 << 62

// sliceBound returns a bound of a slice, clipped to farthest.
func sliceBound(v Value, absent int) (int, error) {
	if isAbsent(v) {
		return absent, nil
	}
	i, ok := asInt(v)
	if !ok {
		return 0, typeError("slice indices must be integers or None or have an __index__ method")
	}
	n, small := i.Int64()
	if !small {
		n = int64(i.Sign()) * farthest
	}
	return int(min(max(n, -farthest), farthest)), nil
}
