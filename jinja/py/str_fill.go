package py

import (
	"math"
	"strings"
	"unicode/utf8"
)

func strLeftJustify(b *Budget, s string, args []Value) (Value, error) {
	return justify(b, s, args, func(_, _ int) int { return 0 })
}

func strRightJustify(b *Budget, s string, args []Value) (Value, error) {
	return justify(b, s, args, func(_, missing int) int { return missing })
}

func strCenter(b *Budget, s string, args []Value) (Value, error) {
	// If both sides cannot be equal, an odd width adds more to the left.
	return justify(b, s, args, func(width, missing int) int { return missing/2 + missing&width&1 })
}

// justify fills s up to a width; left returns how many of the fill characters are before it.
func justify(b *Budget, s string, args []Value, left func(width, missing int) int) (Value, error) {
	width, err := sizeArgument(args[0])
	if err != nil {
		return nil, err
	}
	fill, ok := TextOf(args[1])
	if !ok || utf8.RuneCountInString(fill) != 1 {
		return nil, typeError("the fill character must be a str of exactly one character")
	}
	missing := max(width, 0) - utf8.RuneCountInString(s)
	if missing <= 0 {
		return Str(s), nil
	}
	before := left(width, missing)
	text, err := filled(b, s, fill, before, missing-before)
	return Str(text), err
}

// filled returns s with so many fill characters before and after it.
func filled(b *Budget, s, fill string, before, after int) (string, error) {
	if err := room(b, len(s), before+after, len(fill)); err != nil {
		return "", err
	}
	return strings.Repeat(fill, before) + s + strings.Repeat(fill, after), nil
}

func strZeroFill(b *Budget, s string, args []Value) (Value, error) {
	width, err := sizeArgument(args[0])
	if err != nil {
		return nil, err
	}
	missing := max(width, 0) - utf8.RuneCountInString(s)
	if missing <= 0 {
		return Str(s), nil
	}
	sign := ""
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		sign = s[:1]
	}
	text, err := filled(b, s[len(sign):], "0", missing, 0)
	return Str(sign + text), err
}

func strExpandTabs(b *Budget, s string, args []Value) (Value, error) {
	width, err := cInt(args[0])
	if err != nil {
		return nil, err
	}
	if err := b.Text(len(s)); err != nil {
		return nil, err
	}
	var expanded strings.Builder
	column := 0
	for _, r := range s {
		switch {
		case r == '\t' && width > 0:
			spaces := width - column%width
			column += spaces
			if err := b.Append(expanded.Len(), spaces); err != nil {
				return nil, err
			}
			expanded.WriteString(strings.Repeat(" ", spaces))
		case r == '\t':
		case r == '\n' || r == '\r':
			column = 0
			expanded.WriteRune(r)
		default:
			column++
			expanded.WriteRune(r)
		}
	}
	return Str(expanded.String()), nil
}

// cInt returns an argument that C declares as an int.
func cInt(v Value) (int, error) {
	index, err := Index(v)
	if err != nil {
		return 0, err
	}
	n, ok := index.Int64()
	if !ok || n > math.MaxInt32 || n < math.MinInt32 {
		return 0, exception("OverflowError", "Python int too large to convert to C int")
	}
	return int(n), nil
}
