package syntax

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/albertofaria/pav/jinja/py"
)

// inTag reads tokens until the end of the tag.
func (l *lexer) inTag(end kind) error {
	tagEnd := variableEnd
	if end == kindBlockEnd {
		tagEnd = blockEnd
	}
	for l.offset < len(l.source) {
		text := l.rest()
		if size := tagEnd(text); size > 0 && len(l.closing) == 0 {
			l.emit(end, "")
			l.advance(size)
			return nil
		}
		if err := l.inside(text); err != nil {
			return err
		}
	}
	// The parser reports more exactly what is missing.
	return nil
}

// inside reads one token of an expression or statement, or whitespace.
func (l *lexer) inside(text string) error {
	switch first := text[0]; {
	case isDecimal(first):
		return l.number(text)
	case first == '\'' || first == '"':
		return l.quoted(text)
	}
	if space := len(text) - len(trimLeft(text)); space > 0 {
		l.advance(space)
		return nil
	}
	if size := nameAt(text); size > 0 {
		return l.name(text[:size])
	}
	for _, operator := range operators {
		if strings.HasPrefix(text, operator) {
			return l.operator(operator)
		}
	}
	char, _ := utf8.DecodeRuneInString(text)
	return errorAt(l.pos, "unexpected character %q", char)
}

func (l *lexer) number(text string) error {
	if size := floatAt(text, l.precededByDot()); size > 0 {
		return l.float(text[:size])
	}
	size, base := integerAt(text)
	return l.integer(text[:size], base)
}

func (l *lexer) precededByDot() bool { return l.offset > 0 && l.source[l.offset-1] == '.' }

func (l *lexer) operator(operator string) error {
	switch operator {
	case "{":
		l.closing = append(l.closing, '}')
	case "(":
		l.closing = append(l.closing, ')')
	case "[":
		l.closing = append(l.closing, ']')
	case "}", ")", "]":
		if len(l.closing) == 0 {
			return errorAt(l.pos, "unexpected '%s'", operator)
		}
		last := len(l.closing) - 1
		if expected := l.closing[last]; expected != operator[0] {
			return errorAt(l.pos, "unexpected '%s', expected '%c'", operator, expected)
		}
		l.closing = l.closing[:last]
	}
	l.emit(kind(operator), operator)
	l.advance(len(operator))
	return nil
}

func (l *lexer) name(text string) error {
	for i, char := range text {
		if i == 0 && !startsName(char) {
			return errorAt(l.pos, "invalid character %q in a name", char)
		}
	}
	l.emit(kindName, text)
	l.advance(len(text))
	return nil
}

func (l *lexer) literal(k kind, value py.Value, size int) {
	l.tokens = append(l.tokens, token{Pos: l.pos, kind: k, value: value})
	l.advance(size)
}

func (l *lexer) float(text string) error {
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if numError := (*strconv.NumError)(nil); err != nil && !isRange(err, &numError) {
		return errorAt(l.pos, "invalid number")
	}
	l.literal(kindFloat, py.Float(value), len(text))
	return nil
}

// maxDigits is how many decimal digits Python converts to an integer.
const maxDigits = 4300

func (l *lexer) integer(text string, base int) error {
	digits := strings.ReplaceAll(text, "_", "")
	if base != 10 {
		digits = digits[2:]
	} else if len(digits) > maxDigits {
		return errorAt(l.pos, "the number has more than %d digits", maxDigits)
	}
	value, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return errorAt(l.pos, "invalid number")
	}
	l.literal(kindInteger, py.NewBigInt(value), len(text))
	return nil
}

// floatAt returns the length of the float at the beginning of text, or zero: 1.5, 1e3, 1_0.5E-3.
func floatAt(text string, afterDot bool) int {
	if afterDot {
		return 0
	}
	whole := digitsAt(text)
	if whole == 0 {
		return 0
	}
	size := whole
	if strings.HasPrefix(text[size:], ".") {
		if fraction := digitsAt(text[size+1:]); fraction > 0 {
			size += 1 + fraction
		}
	}
	if exponent := exponentAt(text[size:]); exponent > 0 {
		return size + exponent
	}
	if size == whole {
		return 0
	}
	return size
}

// exponentAt returns the length of the exponent at the beginning of text, or zero.
func exponentAt(text string) int {
	if text == "" || text[0]|0x20 != 'e' {
		return 0
	}
	size := 1
	if len(text) > 1 && (text[1] == '+' || text[1] == '-') {
		size++
	}
	digits := digitsAt(text[size:])
	if digits == 0 {
		return 0
	}
	return size + digits
}

// digitsAt returns the length of the decimal digits, single underscores between them, at the beginning of text.
func digitsAt(text string) int {
	return run(text, isDecimal)
}

// run returns the length of the matching bytes at the beginning of text, with single underscores in between.
func run(text string, matches func(byte) bool) int {
	size := 0
	for i := 0; i < len(text); i++ {
		switch {
		case matches(text[i]):
			size = i + 1
		case text[i] == '_' && i == size && size > 0:
		default:
			return size
		}
	}
	return size
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }
func isBinary(c byte) bool  { return c == '0' || c == '1' }
func isOctal(c byte) bool   { return '0' <= c && c <= '7' }
func isZero(c byte) bool    { return c == '0' }
func isHex(c byte) bool {
	return isDecimal(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// integerAt returns length and base of the integer at the beginning of text, or zero.
func integerAt(text string) (size, base int) {
	if len(text) > 1 && text[0] == '0' {
		matches, base := isZero, 10
		switch text[1] | 0x20 {
		case 'b':
			matches, base = isBinary, 2
		case 'o':
			matches, base = isOctal, 8
		case 'x':
			matches, base = isHex, 16
		}
		if base != 10 {
			digits := strings.TrimPrefix(text[2:], "_")
			if size = run(digits, matches); size > 0 {
				return len(text) - len(digits) + size, base
			}
		}
	}
	if text[0] == '0' {
		return run(text, isZero), 10
	}
	return run(text, isDecimal), 10
}

// nameAt returns the length of the run of word characters at the beginning of text.
func nameAt(text string) int {
	for i, char := range text {
		if !continuesName(char) {
			return i
		}
	}
	return len(text)
}

func startsName(char rune) bool {
	return char == '_' || unicode.IsLetter(char) || unicode.Is(unicode.Nl, char) || unicode.Is(unicode.Other_ID_Start, char)
}

func continuesName(char rune) bool {
	if char < utf8.RuneSelf {
		return char == '_' || 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z' || '0' <= char && char <= '9'
	}
	return startsName(char) || unicode.In(char, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}

func trimLeft(text string) string  { return strings.TrimLeftFunc(text, py.IsSpaceRune) }
func trimRight(text string) string { return strings.TrimRightFunc(text, py.IsSpaceRune) }
