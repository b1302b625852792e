package py

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// maxDigits is how many decimal digits Python converts between integers and text.
const maxDigits = 4300

// ParseInt returns int(text, base). Text may have whitespace around it, and underscores between its digits.
func ParseInt(b *Budget, text string, base int) (Int, error) {
	if base != 0 && (base < 2 || base > 36) {
		return Int{}, valueError("int() base must be >= 2 and <= 36, or 0")
	}
	if err := b.Step(len(text)/16 + 1); err != nil {
		return Int{}, err
	}
	negative, digits := cutSign(asciiDigits(strings.TrimFunc(text, isNumberSpace)))
	digits, actual, ok := withoutPrefix(digits, base)
	if ok {
		digits, ok = withoutUnderscores(digits)
	}
	if !ok || digits == "" || strings.IndexByte("+-", digits[0]) >= 0 {
		return Int{}, invalidInt(base)
	}
	n, err := parseDigits(b, digits, actual, base)
	if err != nil {
		return Int{}, err
	}
	if negative {
		n.Neg(n)
	}
	return NewBigInt(n), nil
}

func invalidInt(base int) error { return valueError("invalid literal for int() with base %d", base) }

// parseDigits reads digits of a base; asked is the base that errors name.
func parseDigits(b *Budget, digits string, base, asked int) (*big.Int, error) {
	if len(digits) > maxDigits && base&(base-1) != 0 {
		return nil, tooManyDigits()
	}
	if err := b.integer(int(float64(len(digits)) * math.Log2(float64(base)))); err != nil {
		return nil, err
	}
	if err := b.Alloc(4 * len(digits)); err != nil {
		return nil, err
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, invalidInt(asked)
	}
	return n, nil
}

func cutSign(text string) (negative bool, rest string) {
	if rest, negative = strings.CutPrefix(text, "-"); negative {
		return true, rest
	}
	return false, strings.TrimPrefix(text, "+")
}

// isNumberSpace reports whether r may surround a number: not the information separators, which are white space elsewhere.
func isNumberSpace(r rune) bool { return unicode.IsSpace(r) }

// withoutPrefix removes 0x, 0o or 0b where base allows it, and returns the base that is meant.
func withoutPrefix(digits string, base int) (rest string, actual int, ok bool) {
	prefixed := 0
	if len(digits) > 1 && digits[0] == '0' {
		switch digits[1] | 0x20 {
		case 'x':
			prefixed = 16
		case 'o':
			prefixed = 8
		case 'b':
			prefixed = 2
		}
	}
	if prefixed != 0 && (base == 0 || base == prefixed) {
		return strings.TrimPrefix(digits[2:], "_"), prefixed, true
	}
	if base != 0 {
		return digits, base, true
	}
	// As in Python's source, a decimal number does not begin with zero, unless it is zero.
	zero := strings.Trim(digits, "0_") == ""
	return digits, 10, zero || digits[0] != '0'
}

// withoutUnderscores removes single underscores between digits; ok is false for others.
func withoutUnderscores(digits string) (string, bool) {
	if !strings.Contains(digits, "_") {
		return digits, true
	}
	if digits[0] == '_' || digits[len(digits)-1] == '_' || strings.Contains(digits, "__") {
		return "", false
	}
	return strings.ReplaceAll(digits, "_", ""), true
}

// asciiDigits replaces the decimal digits of other scripts.
func asciiDigits(text string) string {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return strings.Map(func(r rune) rune {
				if r >= 0x80 && isDecimal(r) {
					return '0' + digitValue(r)
				}
				return r
			}, text)
		}
	}
	return text
}

// digitValue returns the value of a decimal digit of any script: the ten digits of each script are consecutive.
func digitValue(r rune) rune {
	value := rune(0)
	for value < 9 && isDecimal(r-value-1) {
		value++
	}
	// Scripts may follow each other without a gap, as the mathematical digits do.
	if 0x1d7ce <= r && r <= 0x1d7ff {
		return (r - 0x1d7ce) % 10
	}
	return value
}

// ParseFloat returns float(text).
func ParseFloat(text string) (Float, error) {
	invalid := valueError("could not convert string to float")
	digits := asciiDigits(strings.TrimFunc(text, isNumberSpace))
	bare := strings.ToLower(strings.TrimLeft(digits, "+-"))
	switch {
	case len(digits)-len(bare) > 1 || digits == "":
		return 0, invalid
	case bare == "inf", bare == "infinity":
		if digits[0] == '-' {
			return Float(math.Inf(-1)), nil
		}
		return Float(math.Inf(1)), nil
	case bare == "nan":
		return Float(math.NaN()), nil
	}
	if !isFloatSyntax(bare) {
		return 0, invalid
	}
	// A number that is too large is infinite, without an error.
	f, err := strconv.ParseFloat(strings.ReplaceAll(digits, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, invalid
	}
	return Float(f), nil
}

// isFloatSyntax reports whether text, in lower case and without sign, consists of digits with at most a point and an
// exponent,
// and underscores only between digits.
func isFloatSyntax(text string) bool {
	mantissa, exponent, hasExponent := strings.Cut(text, "e")
	if hasExponent {
		if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
			exponent = exponent[1:]
		}
		if exponent == "" || !isDigits(exponent) {
			return false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	return whole+fraction != "" && (whole == "" || isDigits(whole)) && (fraction == "" || isDigits(fraction))
}

// isDigits reports whether text consists of decimal digits with single underscores between them.
func isDigits(text string) bool {
	text, ok := withoutUnderscores(text)
	return ok && strings.Trim(text, "0123456789") == ""
}
