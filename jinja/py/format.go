package py

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// Format returns Python's format(v, spec).
func Format(b *Budget, v Value, spec string) (string, error) {
	if spec == "" {
		return ToStr(b, v)
	}
	if err := b.Step(len(spec)); err != nil {
		return "", err
	}
	switch v := v.(type) {
	case Str:
		return formatText(b, string(v), spec)
	case Markup:
		return formatText(b, string(v), spec)
	case Int, Bool:
		return formatInt(b, v, spec)
	case Float:
		return formatFloat(b, v, spec)
	default:
		return "", typeError("unsupported format string passed to %s.__format__", v.TypeName())
	}
}

func formatText(b *Budget, s, spec string) (string, error) {
	f, err := parseSpec(spec, 's', '<')
	switch {
	case err != nil:
		return "", err
	case f.kind != 's':
		return "", unknownFormat("str")
	case f.sign != 0:
		return "", valueError("Sign not allowed in string format specifier")
	case f.noNegative:
		return "", valueError("Negative zero coercion (z) not allowed in string format specifier")
	case f.alternate:
		return "", valueError("Alternate form (#) not allowed in string format specifier")
	case f.align == '=':
		return "", valueError("'=' alignment not allowed in string format specifier")
	}
	if f.precision >= 0 {
		s = s[:byteOffset(s, f.precision)]
	}
	before, _, after := f.padding(utf8.RuneCountInString(s))
	return filled(b, s, f.fill, before, after)
}

// padding returns how many fill characters are before, within and after a text of so many code points.
func (f *formatSpec) padding(length int) (before, within, after int) {
	missing := max(f.width-length, 0)
	switch f.align {
	case '<':
		return 0, 0, missing
	case '^':
		return missing / 2, 0, missing - missing/2
	case '=':
		return 0, missing, 0
	default:
		return missing, 0, 0
	}
}

var intBases = map[rune]struct {
	base   int
	prefix string
}{'b': {2, "0b"}, 'o': {8, "0o"}, 'x': {16, "0x"}, 'X': {16, "0X"}, 'd': {10, ""}, 'n': {10, ""}}

func formatInt(b *Budget, v Value, spec string) (string, error) {
	f, err := parseSpec(spec, 'd', '>')
	if err != nil {
		return "", err
	}
	if strings.ContainsRune("eEfFgG%", f.kind) {
		return formatReal(b, v, f)
	}
	as, known := intBases[f.kind]
	switch {
	case !known && f.kind != 'c':
		return "", unknownFormat(v.TypeName())
	case f.precision >= 0:
		return "", valueError("Precision not allowed in integer format specifier")
	case f.noNegative:
		return "", valueError("Negative zero coercion (z) not allowed in integer format specifier")
	}
	n, err := Index(v)
	if err != nil {
		return "", err
	}
	if f.kind == 'c' {
		return f.character(b, n)
	}
	digits, err := intDigits(b, n, as.base)
	if err != nil {
		return "", err
	}
	num := number{negative: n.Sign() < 0, digits: digits}
	if f.kind == 'X' {
		num.digits = strings.ToUpper(digits)
	}
	if f.alternate {
		num.prefix = as.prefix
	}
	return f.number(b, num)
}

// intDigits returns the digits of the absolute value of n.
func intDigits(b *Budget, n Int, base int) (string, error) {
	if base == 10 {
		text, err := ToStr(b, n)
		return strings.TrimPrefix(text, "-"), err
	}
	absolute := new(big.Int).Abs(n.Big())
	if err := b.Text(absolute.BitLen()); err != nil {
		return "", err
	}
	return absolute.Text(base), nil
}

// character formats a number as the character with that code.
func (f *formatSpec) character(b *Budget, n Int) (string, error) {
	if f.sign != 0 {
		return "", valueError("Sign not allowed with integer format specifier 'c'")
	}
	if f.alternate {
		return "", valueError("Alternate form (#) not allowed with integer format specifier 'c'")
	}
	text, err := charCode(n)
	if err != nil {
		return "", err
	}
	return f.number(b, number{rest: text})
}

func charCode(n Int) (string, error) {
	if code, ok := n.Int64(); !ok || code < 0 || code > utf8.MaxRune {
		return "", exception("OverflowError", "%%c arg not in range(0x110000)")
	}
	return character(n, "%c arg not in range(0x110000)")
}

func formatFloat(b *Budget, v Float, spec string) (string, error) {
	f, err := parseSpec(spec, 0, '>')
	if err != nil {
		return "", err
	}
	if !strings.ContainsRune("eEfFgGn%\x00", f.kind) {
		return "", unknownFormat("float")
	}
	return formatReal(b, v, f)
}

func formatReal(b *Budget, v Value, f formatSpec) (string, error) {
	x, err := ToFloat(b, v)
	if err != nil {
		return "", err
	}
	if f.precision > math.MaxInt32 {
		return "", valueError("precision too big")
	}
	text := floatText{
		value: float64(x), kind: byte(f.kind), precision: f.precision, alternate: f.alternate, noNegative: f.noNegative,
	}
	suffix := ""
	switch f.kind {
	case 0:
		text.kind, text.pointZero = 'g', true
		if f.precision < 0 {
			text.kind = 'r'
		}
	case 'n':
		text.kind = 'g'
	case '%':
		text.kind, suffix = 'f', "%"
		text.value *= 100
	}
	negative, unsigned, err := text.format(b)
	if err != nil {
		return "", err
	}
	whole := len(unsigned) - len(strings.TrimLeft(unsigned, "0123456789"))
	return f.number(b, number{negative: negative, digits: unsigned[:whole], rest: unsigned[whole:] + suffix})
}
