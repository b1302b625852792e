package syntax

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/albertofaria/pav/jinja/py"
)

func isRange(err error, numError **strconv.NumError) bool {
	return errors.As(err, numError) && errors.Is((*numError).Err, strconv.ErrRange)
}

// quoted reads the string literal at the beginning of text.
func (l *lexer) quoted(text string) error {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			value, err := unescape(text[1:i])
			if err != nil {
				return errorAt(l.pos, "%v", err)
			}
			l.literal(kindString, py.Str(value), i+1)
			return nil
		}
	}
	return errorAt(l.pos, "the string is not closed: expected %c", quote)
}

// simpleEscapes are the escapes of one character.
var simpleEscapes = map[byte]string{
	'\n': "", '\\': `\`, '\'': "'", '"': `"`,
	'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// unescape decodes text as Python's unicode-escape codec does: an unknown escape remains unchanged.
func unescape(text string) (string, error) {
	if !strings.Contains(text, `\`) {
		return text, nil
	}
	var out strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '\\')
		if i < 0 {
			out.WriteString(text)
			break
		}
		out.WriteString(text[:i])
		decoded, size, err := escape(text[i:])
		if err != nil {
			return "", err
		}
		out.WriteString(decoded)
		text = text[i+size:]
	}
	return out.String(), nil
}

// escape decodes the escape at the beginning of text, and returns its length, too.
func escape(text string) (decoded string, size int, err error) {
	if len(text) == 1 {
		return "", 0, errors.New(`\ at the end of a string`)
	}
	if simple, ok := simpleEscapes[text[1]]; ok {
		return simple, 2, nil
	}
	switch c := text[1]; {
	case c == 'x':
		return hexEscape(text, 2)
	case c == 'u':
		return hexEscape(text, 4)
	case c == 'U':
		return hexEscape(text, 8)
	case c == 'N':
		return namedEscape(text)
	case isOctal(c):
		return octalEscape(text)
	case c >= utf8.RuneSelf:
		// Jinja converts the text to ASCII before it decodes it, so the backslash escapes the next one.
		char, length := utf8.DecodeRuneInString(text[1:])
		return `\` + asciiEscape(char), 1 + length, nil
	}
	return text[:2], 2, nil
}

func asciiEscape(char rune) string {
	switch {
	case char <= 0xff:
		return fmt.Sprintf("x%02x", char)
	case char <= 0xffff:
		return fmt.Sprintf("u%04x", char)
	default:
		return fmt.Sprintf("U%08x", char)
	}
}

func hexEscape(text string, digits int) (string, int, error) {
	if len(text) < 2+digits {
		return "", 0, fmt.Errorf(`truncated \%c escape in a string`, text[1])
	}
	code, err := strconv.ParseUint(text[2:2+digits], 16, 32)
	if err != nil {
		return "", 0, fmt.Errorf(`truncated \%c escape in a string`, text[1])
	}
	if code > utf8.MaxRune || 0xd800 <= code && code <= 0xdfff {
		return "", 0, errors.New("a string has an escape that is no Unicode character")
	}
	return string(rune(code)), 2 + digits, nil
}

func octalEscape(text string) (string, int, error) {
	size := 1
	for size < len(text) && size < 4 && isOctal(text[size]) {
		size++
	}
	code, err := strconv.ParseUint(text[1:size], 8, 32)
	if err != nil {
		return "", 0, err
	}
	return string(rune(code)), size, nil
}

// namedEscape decodes \N{NAME}.
func namedEscape(text string) (string, int, error) {
	name, _, closed := strings.Cut(text[2:], "}")
	if !closed || !strings.HasPrefix(name, "{") {
		return "", 0, errors.New(`malformed \N escape in a string: expected \N{NAME}`)
	}
	char, ok := runeNamed(name[1:])
	if !ok {
		return "", 0, errors.New(`unknown Unicode character name in a string`)
	}
	return string(char), len(`\N`) + len(name) + len("}"), nil
}
