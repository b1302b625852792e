package py

import (
	"errors"
	"math"
	"strings"
	"unicode/utf8"
)

// convert formats the next argument by d.
func (p *percentFormatter) convert(d directive) error {
	v, err := p.next()
	if err != nil {
		return err
	}
	var text string
	switch d.verb {
	case 's', 'r', 'a':
		text, err = p.textual(v, d)
	case 'c':
		text, err = p.character(v)
	case 'd', 'i', 'u', 'o', 'x', 'X':
		var num number
		if num, err = p.integer(v, d); err == nil {
			return p.writeNumber(num, d)
		}
	case 'e', 'E', 'f', 'F', 'g', 'G':
		var num number
		if num, err = p.real(v, d); err == nil {
			return p.writeNumber(num, d)
		}
	default:
		return valueError("unsupported format character (0x%x)", d.verb)
	}
	if err != nil {
		return err
	}
	return p.writeFilled(text, " ", d)
}

func (p *percentFormatter) textual(v Value, d directive) (text string, err error) {
	if d.verb == 's' && p.markup {
		text, err = p.escaped(v)
	} else if d.verb == 's' {
		text, err = ToStr(p.b, v)
	} else if text, err = Repr(p.b, v); err == nil && p.markup {
		text, err = p.escaped(Str(text))
	}
	if err == nil && d.verb == 'a' {
		text, err = toASCII(p.b, text)
	}
	if err == nil && d.precision >= 0 {
		text = text[:byteOffset(text, d.precision)]
	}
	return text, err
}

func (p *percentFormatter) escaped(v Value) (string, error) {
	html, err := Escape(p.b, v)
	return string(html), err
}

// toASCII escapes the characters of a representation that are not ASCII.
func toASCII(b *Budget, text string) (string, error) {
	if isASCII(text) {
		return text, nil
	}
	if err := room(b, len(text), utf8.RuneCountInString(text), len(`\U00000000`)); err != nil {
		return "", err
	}
	var ascii strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii.WriteRune(r)
		} else {
			ascii.WriteString(backslashed(r))
		}
	}
	return ascii.String(), nil
}

func (p *percentFormatter) character(v Value) (string, error) {
	if s, ok := TextOf(v); ok && !p.markup && utf8.RuneCountInString(s) == 1 {
		return s, nil
	}
	n, ok := asInt(v)
	if !ok || p.markup {
		return "", typeError("%%c requires int or char")
	}
	return charCode(n)
}

func (p *percentFormatter) integer(v Value, d directive) (number, error) {
	n, err := p.whole(v, d.verb)
	if err != nil {
		return number{}, err
	}
	if d.precision > math.MaxInt32-3 {
		return number{}, exception("OverflowError", "precision too large")
	}
	as, ok := intBases[d.verb]
	if !ok {
		as = intBases['d']
	}
	digits, err := intDigits(p.b, n, as.base)
	if err != nil {
		return number{}, err
	}
	if digits, err = filled(p.b, digits, "0", max(d.precision-len(digits), 0), 0); err != nil {
		return number{}, err
	}
	num := number{negative: n.Sign() < 0, digits: digits}
	if d.verb == 'X' {
		num.digits = strings.ToUpper(digits)
	}
	if d.alternate {
		num.prefix = as.prefix
	}
	return num, nil
}

// whole returns an argument as an integer: a decimal verb accepts a float, the others only an int.
func (p *percentFormatter) whole(v Value, verb rune) (Int, error) {
	decimal := strings.ContainsRune("diu", verb)
	if n, ok := asInt(v); ok && (decimal || !p.markup) {
		return n, nil
	}
	if !decimal {
		return Int{}, typeError("%%%c format: an integer is required, not %s", verb, v.TypeName())
	}
	switch v.(type) {
	case Float, *Undefined:
		return ToInt(p.b, v)
	}
	if p.markup {
		n, err := ToInt(p.b, v)
		if e, ok := errors.AsType[*Error](err); !ok || e.Kind != Type {
			return n, err
		}
	}
	return Int{}, typeError("%%%c format: a real number is required, not %s", verb, v.TypeName())
}

func (p *percentFormatter) real(v Value, d directive) (number, error) {
	switch v.(type) {
	case Str, Markup, Bytes:
		if !p.markup {
			return number{}, typeError("must be real number, not %s", v.TypeName())
		}
	}
	x, err := ToFloat(p.b, v)
	if err != nil {
		return number{}, err
	}
	text := floatText{value: float64(x), kind: byte(d.verb), precision: d.precision, alternate: d.alternate}
	negative, unsigned, err := text.format(p.b)
	return number{negative: negative, digits: unsigned}, err
}

func (p *percentFormatter) writeNumber(n number, d directive) error {
	sign := ""
	switch {
	case n.negative:
		sign = "-"
	case d.plus:
		sign = "+"
	case d.blank:
		sign = " "
	}
	if !d.zero || d.left {
		return p.writeFilled(sign+n.prefix+n.digits, " ", d)
	}
	d.width -= len(sign) + len(n.prefix)
	if err := p.write(sign + n.prefix); err != nil {
		return err
	}
	return p.writeFilled(n.digits, "0", d)
}

func (p *percentFormatter) writeFilled(text, fill string, d directive) error {
	missing := max(d.width-utf8.RuneCountInString(text), 0)
	before, after := missing, 0
	if d.left {
		before, after = 0, missing
	}
	text, err := filled(p.b, text, fill, before, after)
	if err != nil {
		return err
	}
	return p.write(text)
}
