package py

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// number is the text of a number in parts: rest is the text after the digits that can be grouped.
type number struct {
	negative             bool
	prefix, digits, rest string
}

// number adds the sign, separators and fill characters of a specification to a number.
func (f *formatSpec) number(b *Budget, n number) (string, error) {
	if err := room(b, len(n.prefix)+len(n.digits)*2+len(n.rest), max(f.width, 0), len(f.fill)*2); err != nil {
		return "", err
	}
	sign := f.signOf(n.negative)
	others := len(sign) + len(n.prefix) + utf8.RuneCountInString(n.rest)
	digits := n.digits
	if digits != "" {
		zeros := 0
		if f.fill == "0" && f.align == '=' {
			zeros = f.width - others
		}
		digits = f.grouped(digits, zeros)
	}
	before, within, after := f.padding(others + len(digits))
	fill := func(n int) string { return strings.Repeat(f.fill, n) }
	return fill(before) + sign + n.prefix + fill(within) + digits + n.rest + fill(after), nil
}

func (f *formatSpec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case f.sign == '+' || f.sign == ' ':
		return string(f.sign)
	default:
		return ""
	}
}

// grouped puts separators between groups of digits, with zeros before them up to a width.
func (f *formatSpec) grouped(digits string, width int) string {
	size := 3
	if strings.ContainsRune("boxX", f.kind) {
		size = 4
	}
	if f.separator == "" {
		size = max(len(digits), width)
	}
	var groups []string
	for {
		n := min(size, max(len(digits), width, 1))
		cut := max(len(digits)-n, 0)
		groups = append(groups, strings.Repeat("0", n-(len(digits)-cut))+digits[cut:])
		digits = digits[:cut]
		width -= n
		if digits == "" && width <= 0 {
			break
		}
		width--
	}
	slices.Reverse(groups)
	return strings.Join(groups, f.separator)
}
