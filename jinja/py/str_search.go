package py

import (
	"math"
	"strings"
	"unicode/utf8"
)

// window is the part of a text between the start and end arguments of a method. An impossible one, whose start lies
// behind its end, does not even contain the empty string.
type window struct {
	text       string
	before     int // code points before it
	impossible bool
}

func windowOf(s string, start, end Value) (window, error) {
	n := utf8.RuneCountInString(s)
	lo, err := sliceIndex(start, 0, n)
	if err != nil {
		return window{}, err
	}
	hi, err := sliceIndex(end, n, n)
	if err != nil {
		return window{}, err
	}
	hi = min(hi, n)
	if lo > hi {
		return window{impossible: true}, nil
	}
	if n == len(s) {
		return window{text: s[lo:hi], before: lo}, nil
	}
	from := byteOffset(s, lo)
	return window{text: s[from : from+byteOffset(s[from:], hi-lo)], before: lo}, nil
}

// sliceIndex returns the argument of a method that says where in a sequence of length n to start or end.
func sliceIndex(v Value, absent, n int) (int, error) {
	if _, ok := v.(None); ok {
		return absent, nil
	}
	return sequenceIndex(v, n)
}

func sequenceIndex(v Value, n int) (int, error) {
	index, err := Index(v)
	if err != nil {
		return 0, typeError("slice indices must be integers or have an __index__ method")
	}
	i, ok := index.Int64()
	switch {
	case !ok && index.Sign() > 0:
		return math.MaxInt, nil
	case !ok:
		return 0, nil
	case i < 0:
		return max(int(i)+n, 0), nil
	default:
		return int(i), nil
	}
}

// byteOffset returns where code point number n of s begins.
func byteOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// strArgument returns an argument that must be a str.
func strArgument(function string, v Value) (string, error) {
	if s, ok := TextOf(v); ok {
		return s, nil
	}
	return "", typeError("%s() argument must be str, not %s", function, v.TypeName())
}

// place calls strings.Index or strings.LastIndex.
type place func(s, sub string) int

var (
	firstOf place = strings.Index
	lastOf  place = strings.LastIndex
)

func strFind(where place, must bool) strMethod {
	return func(_ *Budget, s string, args []Value) (Value, error) {
		sub, err := strArgument("find", args[0])
		if err != nil {
			return nil, err
		}
		w, err := windowOf(s, args[1], args[2])
		if err != nil {
			return nil, err
		}
		i := where(w.text, sub)
		if i >= 0 && !w.impossible {
			return Int{small: int64(w.before + utf8.RuneCountInString(w.text[:i]))}, nil
		}
		if must {
			return nil, valueError("substring not found")
		}
		return Int{small: -1}, nil
	}
}

func strCount(_ *Budget, s string, args []Value) (Value, error) {
	sub, err := strArgument("count", args[0])
	if err != nil {
		return nil, err
	}
	w, err := windowOf(s, args[1], args[2])
	if err != nil || w.impossible {
		return Int{}, err
	}
	return Int{small: int64(strings.Count(w.text, sub))}, nil
}

func strStartsWith(b *Budget, s string, args []Value) (Value, error) {
	return hasAffix(b, "startswith", strings.HasPrefix, s, args)
}

func strEndsWith(b *Budget, s string, args []Value) (Value, error) {
	return hasAffix(b, "endswith", strings.HasSuffix, s, args)
}

func hasAffix(
	b *Budget, function string, has func(s, affix string) bool, s string, args []Value,
) (Value, error) {
	w, err := windowOf(s, args[1], args[2])
	if err != nil {
		return nil, err
	}
	affixes := []Value{args[0]}
	if several, ok := args[0].(*Tuple); ok {
		affixes = several.Items
	}
	if err := b.Step(len(affixes)); err != nil {
		return nil, err
	}
	for _, v := range affixes {
		affix, ok := TextOf(v)
		if !ok {
			return nil, typeError("%s first arg must be str or a tuple of str, not %s", function, v.TypeName())
		}
		if !w.impossible && has(w.text, affix) {
			return Bool(true), nil
		}
	}
	return Bool(false), nil
}

func strPartition(_ *Budget, s string, args []Value) (Value, error) {
	sep, err := separatorOf(args[0])
	if err != nil {
		return nil, err
	}
	before, after, found := strings.Cut(s, sep)
	if !found {
		return &Tuple{Items: []Value{Str(s), Str(""), Str("")}}, nil
	}
	return &Tuple{Items: []Value{Str(before), args[0], Str(after)}}, nil
}

func strRightPartition(_ *Budget, s string, args []Value) (Value, error) {
	sep, err := separatorOf(args[0])
	if err != nil {
		return nil, err
	}
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return &Tuple{Items: []Value{Str(""), Str(""), Str(s)}}, nil
	}
	return &Tuple{Items: []Value{Str(s[:i]), args[0], Str(s[i+len(sep):])}}, nil
}

func strReplace(b *Budget, s string, args []Value) (Value, error) {
	from, err := strArgument("replace", args[0])
	if err != nil {
		return nil, err
	}
	to, err := strArgument("replace", args[1])
	if err != nil {
		return nil, err
	}
	limit, err := sizeArgument(args[2])
	if err != nil {
		return nil, err
	}
	n := strings.Count(s, from)
	if limit >= 0 {
		n = min(n, limit)
	}
	if n == 0 {
		return Str(s), nil
	}
	if err := room(b, len(s)-n*len(from), n, len(to)); err != nil {
		return nil, err
	}
	return Str(strings.Replace(s, from, to, n)), nil
}

func strRemovePrefix(_ *Budget, s string, args []Value) (Value, error) {
	prefix, err := strArgument("removeprefix", args[0])
	return Str(strings.TrimPrefix(s, prefix)), err
}

func strRemoveSuffix(_ *Budget, s string, args []Value) (Value, error) {
	suffix, err := strArgument("removesuffix", args[0])
	return Str(strings.TrimSuffix(s, suffix)), err
}

// sizeArgument returns an argument that is a count.
func sizeArgument(v Value) (int, error) {
	index, err := Index(v)
	if err != nil {
		return 0, err
	}
	n, ok := index.Int64()
	if !ok {
		return 0, exception("OverflowError", "Python int too large to convert to C ssize_t")
	}
	return int(n), nil
}

// room takes the memory of a text of base bytes and n times size bytes more.
func room(b *Budget, base, n, size int) error {
	if size > 0 && n > (math.MaxInt-base)/size {
		return b.Text(math.MaxInt)
	}
	return b.Text(base + n*size)
}
