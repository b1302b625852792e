package py

import (
	"encoding/hex"
	"math"
	"strings"
)

// bytesHex writes hexadecimal digits, with a separator after each group of bytes, counted from the right or, if the size of
// groups is negative, from the left.
func bytesHex(b *Budget, self Value, args []Value) (Value, error) {
	data, _ := self.(Bytes)
	group, err := cInt(args[1])
	if err != nil {
		return nil, err
	}
	if err := b.Text(len(data) * 3); err != nil {
		return nil, err
	}
	digits := hex.EncodeToString([]byte(data))
	if _, ok := args[0].(absent); ok {
		return Str(digits), nil
	}
	sep, err := hexSeparator(b, args[0])
	if err != nil || group == 0 || digits == "" {
		return Str(digits), err
	}
	var text strings.Builder
	size := min(max(group, -group), len(data)) * 2
	first := size
	if group > 0 && len(digits)%size > 0 {
		first = len(digits) % size
	}
	text.WriteString(digits[:first])
	for rest := digits[first:]; rest != ""; rest = rest[min(size, len(rest)):] {
		text.WriteString(sep)
		text.WriteString(rest[:min(size, len(rest))])
	}
	return Str(text.String()), nil
}

func hexSeparator(b *Budget, v Value) (string, error) {
	if n, err := Len(b, v); err != nil {
		return "", err
	} else if n != 1 {
		return "", valueError("sep must be length 1.")
	}
	sep, ok := TextOf(v)
	if data, isBytes := v.(Bytes); isBytes {
		sep, ok = string(data), true
	}
	if !ok {
		return "", typeError("sep must be str or bytes.")
	}
	if !isASCII(sep) {
		return "", valueError("sep must be ASCII.")
	}
	return sep, nil
}

func bytesFromHex(b *Budget, _ Value, args []Value) (Value, error) {
	text, err := strArgument("fromhex", args[0])
	if err != nil {
		return nil, err
	}
	if err := b.Text(len(text)); err != nil {
		return nil, err
	}
	var data []byte
	for text = trimHexSpace(text); text != ""; text = trimHexSpace(text) {
		pair, err := hex.DecodeString(text[:min(2, len(text))])
		if err != nil {
			return nil, valueError("non-hexadecimal number found in fromhex() arg")
		}
		data = append(data, pair...)
		text = text[2:]
	}
	return Bytes(data), nil
}

func trimHexSpace(text string) string { return strings.TrimLeft(text, " \t\n\r\v\f") }

// bytesMakeTrans makes a table for translate from two texts of equal length.
func bytesMakeTrans(_ *Budget, _ Value, args []Value) (Value, error) {
	from, isFrom := args[0].(Bytes)
	to, isTo := args[1].(Bytes)
	if !isFrom || !isTo {
		return nil, typeError("a bytes-like object is required")
	}
	if len(from) != len(to) {
		return nil, valueError("maketrans arguments must have same length")
	}
	table := make([]byte, math.MaxUint8+1)
	for i := range table {
		table[i] = byte(i)
	}
	for i := range len(from) {
		table[from[i]] = to[i]
	}
	return Bytes(table), nil
}

// bytesTranslate looks every byte up in a table, except those that it deletes.
func bytesTranslate(b *Budget, self Value, args []Value) (Value, error) {
	data, _ := self.(Bytes)
	table, ok := args[0].(Bytes)
	_, isNone := args[0].(None)
	if !ok && !isNone {
		return nil, typeError("a bytes-like object is required, not '%s'", args[0].TypeName())
	}
	if ok && len(table) != math.MaxUint8+1 {
		return nil, valueError("translation table must be 256 characters long")
	}
	deleted, ok := args[1].(Bytes)
	if !ok {
		return nil, typeError("a bytes-like object is required, not '%s'", args[1].TypeName())
	}
	if err := b.Text(len(data)); err != nil {
		return nil, err
	}
	translated := make([]byte, 0, len(data))
	for i := range len(data) {
		switch {
		case strings.IndexByte(string(deleted), data[i]) >= 0:
		case isNone:
			translated = append(translated, data[i])
		default:
			translated = append(translated, table[data[i]])
		}
	}
	return Bytes(translated), nil
}
