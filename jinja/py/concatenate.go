package py

import (
	"slices"
	"strings"
)

// concatenate returns x + y of sequences.
func concatenate(b *Budget, x, y Value) (Value, error) {
	s, xText := TextOf(x)
	t, yText := TextOf(y)
	switch v := x.(type) {
	case *List:
		if w, ok := y.(*List); ok {
			items, err := joined(b, v.Items, w.Items)
			return &List{Items: items}, err
		}
	case *Tuple:
		if w, ok := y.(*Tuple); ok {
			items, err := joined(b, v.Items, w.Items)
			return &Tuple{Items: items}, err
		}
	case Bytes:
		if w, ok := y.(Bytes); ok {
			return v + w, b.Text(len(v) + len(w))
		}
	}
	if xText && yText {
		if isMarkup(x) || isMarkup(y) {
			return concatenateMarkup(b, x, y)
		}
		if err := b.Text(len(s) + len(t)); err != nil {
			return nil, err
		}
		return Str(s + t), nil
	}
	return nil, cannotConcatenate(x, y)
}

func cannotConcatenate(x, y Value) error {
	var kind string
	switch x.(type) {
	case Bytes:
		return typeError("can't concat %s to bytes", y.TypeName())
	case Str, Markup:
		kind = "str"
	case *List:
		kind = "list"
	case *Tuple:
		kind = "tuple"
	default:
		return unsupported(OpAdd, x, y)
	}
	return typeError("can only concatenate %s (not \"%s\") to %s", kind, y.TypeName(), kind)
}

func isMarkup(v Value) bool {
	_, ok := v.(Markup)
	return ok
}

// concatenateMarkup escapes the side that is not Markup.
func concatenateMarkup(b *Budget, x, y Value) (Value, error) {
	s, err := Escape(b, x)
	if err != nil {
		return nil, err
	}
	t, err := Escape(b, y)
	if err != nil {
		return nil, err
	}
	if err := b.Text(len(s) + len(t)); err != nil {
		return nil, err
	}
	return s + t, nil
}

func joined(b *Budget, x, y []Value) ([]Value, error) {
	if err := b.Alloc((len(x) + len(y)) * itemSize); err != nil {
		return nil, err
	}
	return append(append(make([]Value, 0, len(x)+len(y)), x...), y...), nil
}

// repeat returns x * y of a sequence and an integer, in either order.
func repeat(b *Budget, x, y Value) (Value, error) {
	if !isSequence(x) {
		if !isSequence(y) {
			return nil, unsupported(OpMul, x, y)
		}
		x, y = y, x
	}
	times, ok := asInt(y)
	if !ok {
		return nil, typeError("can't multiply sequence by non-int of type '%s'", y.TypeName())
	}
	n, small := times.Int64()
	if !small {
		return nil, exception("OverflowError", "cannot fit 'int' into an index-sized integer")
	}
	return repeatTimes(b, x, int(max(min(n, farthest), 0)))
}

func isSequence(v Value) bool {
	switch v.(type) {
	case Str, Markup, Bytes, *List, *Tuple:
		return true
	}
	return false
}

func repeatTimes(b *Budget, x Value, n int) (Value, error) {
	switch v := x.(type) {
	case *List:
		items, err := repeatItems(b, v.Items, n)
		return &List{Items: items}, err
	case *Tuple:
		items, err := repeatItems(b, v.Items, n)
		return &Tuple{Items: items}, err
	case Bytes:
		text, err := repeatText(b, string(v), n)
		return Bytes(text), err
	}
	text, _ := TextOf(x)
	repeated, err := repeatText(b, text, n)
	return like(x, repeated), err
}

func repeatText(b *Budget, text string, n int) (string, error) {
	if text == "" {
		return "", nil
	}
	if n > b.Limits.Text {
		n = b.Limits.Text + 1
	}
	if err := b.Text(len(text) * n); err != nil {
		return "", err
	}
	return strings.Repeat(text, n), nil
}

func repeatItems(b *Budget, items []Value, n int) ([]Value, error) {
	if len(items) == 0 {
		return nil, nil
	}
	// The budget has no room for more than that, and the product does not overflow.
	most := int(b.Limits.Memory)/(len(items)*itemSize) + 1
	if err := b.Alloc(len(items) * itemSize * min(n, most)); err != nil {
		return nil, err
	}
	return slices.Repeat(items, n), nil
}
