package py

import (
	"math"
	"strconv"
	"strings"
)

// floatText is how a float is to be written.
type floatText struct {
	value float64
	// kind is e, f, g or r, in upper case for upper case; r is the shortest that reads back as the same.
	kind      byte
	precision int // -1: the default
	// alternate keeps the point and trailing zeros; pointZero writes at least one digit after the point, unless there
	// is an exponent.
	alternate, pointZero bool
	// noNegative omits the sign of zero, also of numbers that are rounded to zero.
	noNegative bool
}

const (
	// significantDigits is more than the number of digits of any float.
	significantDigits = 1100
	// shortDigits and longDigits are more than the digits of a float before the point, or in an exponent: floats with more
	// digits than shortDigits are large.
	shortDigits, longDigits = 32, 320
	large                   = 1e16
)

// format returns the text without its sign.
func (t floatText) format(b *Budget) (negative bool, text string, err error) {
	if math.IsNaN(t.value) {
		return false, t.cased("nan"), nil
	}
	negative = math.Signbit(t.value)
	if math.IsInf(t.value, 0) {
		return negative, t.cased("inf"), nil
	}
	if t.precision < 0 {
		t.precision = 6
	}
	size := t.precision + shortDigits
	if math.Abs(t.value) > large {
		size += longDigits
	}
	if err := b.Text(size); err != nil {
		return false, "", err
	}
	text = t.finite(math.Abs(t.value))
	if t.noNegative && !strings.ContainsAny(text, "123456789") {
		negative = false
	}
	return negative, t.cased(text), nil
}

func (t floatText) cased(text string) string {
	if t.kind >= 'A' && t.kind <= 'Z' {
		return strings.ToUpper(text)
	}
	return text
}

func (t floatText) finite(x float64) string {
	switch t.kind {
	case 'e', 'E':
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', t.precision, 64), "e")
		return t.pointed(mantissa) + "e" + exponent
	case 'f', 'F':
		return t.pointed(strconv.FormatFloat(x, 'f', t.precision, 64))
	case 'r':
		return t.general(strconv.FormatFloat(x, 'e', -1, 64), 16)
	default:
		t.precision = max(t.precision, 1)
		shown := min(t.precision, significantDigits)
		largest := t.precision
		if t.pointZero {
			largest--
		}
		return t.general(strconv.FormatFloat(x, 'e', shown-1, 64), largest)
	}
}

// pointed adds the point that the alternate form always has.
func (t floatText) pointed(text string) string {
	if t.alternate && !strings.Contains(text, ".") {
		return text + "."
	}
	return text
}

// general writes the scientific text of a float with an exponent only where it has more than largest digits before the
// point, or is small.
func (t floatText) general(scientific string, largest int) string {
	mantissa, exponentText, _ := strings.Cut(scientific, "e")
	digits := strings.TrimRight(strings.Replace(mantissa, ".", "", 1), "0")
	if digits == "" {
		digits = "0"
	}
	if t.alternate && t.kind != 'r' {
		digits += strings.Repeat("0", max(t.precision-len(digits), 0))
	}
	exponent, _ := strconv.Atoi(exponentText)
	point := exponent + 1
	if point > -4 && point <= largest {
		return t.fixed(digits, point)
	}
	text := digits[:1]
	if len(digits) > 1 || t.alternate {
		text += "." + digits[1:]
	}
	return text + "e" + exponentText
}

// fixed writes digits, with the point after some of them.
func (t floatText) fixed(digits string, point int) string {
	if point <= 0 {
		return "0." + strings.Repeat("0", -point) + digits
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	switch after := digits[point:]; {
	case after != "":
		return digits[:point] + "." + after
	case t.pointZero:
		return digits + ".0"
	default:
		return t.pointed(digits)
	}
}
