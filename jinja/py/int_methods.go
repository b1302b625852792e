package py

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// intMethods has the methods of int and bool.
var intMethods = map[string]method{
	"as_integer_ratio": {run: intRatio},
	"bit_count":        {run: intBitCount},
	"bit_length":       {run: intBitLength},
	"conjugate":        {run: func(_ *Budget, self Value, _ []Value) (Value, error) { return Index(self) }},
	"from_bytes":       {params: []Param{{Name: "bytes"}, byName("byteorder", Str("big")), signed}, run: intFromBytes},
	"to_bytes":         {params: []Param{byName("length", Int{small: 1}), byName("byteorder", Str("big")), signed}, run: intToBytes},
}

var signed = Param{Name: "signed", Default: Bool(false), KwOnly: true}

var intData = map[string]func(self Value) Value{
	"real":        wholeOf,
	"imag":        func(Value) Value { return Int{} },
	"numerator":   wholeOf,
	"denominator": func(Value) Value { return Int{small: 1} },
}

// wholeOf returns the int of a bool.
func wholeOf(self Value) Value {
	n, _ := Index(self)
	return n
}

func bigOf(self Value) *big.Int {
	n, _ := Index(self)
	return n.Big()
}

func intRatio(_ *Budget, self Value, _ []Value) (Value, error) {
	return &Tuple{Items: []Value{wholeOf(self), Int{small: 1}}}, nil
}

func intBitLength(_ *Budget, self Value, _ []Value) (Value, error) {
	return Int{small: int64(bigOf(self).BitLen())}, nil
}

func intBitCount(_ *Budget, self Value, _ []Value) (Value, error) {
	n := 0
	for _, word := range bigOf(self).Bits() {
		n += bits.OnesCount(uint(word))
	}
	return Int{small: int64(n)}, nil
}

func intToBytes(b *Budget, self Value, args []Value) (Value, error) {
	length, err := sizeArgument(args[0])
	if err != nil {
		return nil, err
	}
	little, err := isLittleEndian(args[1])
	if err != nil {
		return nil, err
	}
	negative, err := Truth(b, args[2])
	if err != nil {
		return nil, err
	}
	n := bigOf(self)
	switch {
	case length < 0:
		return nil, valueError("length argument must be non-negative")
	case n.Sign() < 0 && !negative:
		return nil, exception("OverflowError", "can't convert negative int to unsigned")
	case neededBytes(n, negative) > length:
		return nil, exception("OverflowError", "int too big to convert")
	}
	if err := b.Text(length); err != nil {
		return nil, err
	}
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(length)*8))
	}
	data := n.FillBytes(make([]byte, length))
	if little {
		slices.Reverse(data)
	}
	return Bytes(data), nil
}

// neededBytes is how many bytes n takes, of which the first bit is its sign if there is one. As in Python, -1 takes none.
func neededBytes(n *big.Int, signed bool) int {
	length := n.BitLen()
	if signed && n.Sign() < 0 {
		length = new(big.Int).Not(n).BitLen()
	}
	if signed && length > 0 {
		length++
	}
	return (length + 7) / 8
}

func isLittleEndian(v Value) (bool, error) {
	order, err := strArgument("to_bytes", v)
	if err != nil {
		return false, err
	}
	if order != "little" && order != "big" {
		return false, valueError("byteorder must be either 'little' or 'big'")
	}
	return order == "little", nil
}

func intFromBytes(b *Budget, self Value, args []Value) (Value, error) {
	little, err := isLittleEndian(args[1])
	if err != nil {
		return nil, err
	}
	negative, err := Truth(b, args[2])
	if err != nil {
		return nil, err
	}
	data, err := bytesOf(b, args[0])
	if err != nil {
		return nil, err
	}
	if little {
		slices.Reverse(data)
	}
	n := new(big.Int).SetBytes(data)
	if negative && len(data) > 0 && data[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(data))*8))
	}
	if _, ok := self.(Bool); ok {
		return Bool(n.Sign() != 0), nil
	}
	return NewBigInt(n), nil
}

// bytesOf returns bytes(v) for bytes, or for small numbers.
func bytesOf(b *Budget, v Value) ([]byte, error) {
	switch v := v.(type) {
	case Bytes:
		return []byte(v), b.Text(len(v))
	case Str, Markup:
		return nil, typeError("cannot convert '%s' object to bytes", v.TypeName())
	}
	items, err := Collect(b, v)
	if err != nil {
		return nil, err
	}
	data := make([]byte, len(items))
	for i, item := range items {
		n, err := Index(item)
		if err != nil {
			return nil, err
		}
		small, ok := n.Int64()
		if !ok || small < 0 || small > math.MaxUint8 {
			return nil, valueError("bytes must be in range(0, 256)")
		}
		data[i] = byte(small)
	}
	return data, nil
}
