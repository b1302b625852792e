package yaml11

import (
	"errors"
	"strings"
	"unicode"
)

var errBinary = errors.New("this is not base64")

// parseBinary decodes base64 as leniently as Python does: what is no digit of it is left out.
func parseBinary(text string) (any, error) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var out strings.Builder
	bits, position, pads := 0, 0, 0
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		return nil, errBinary
	}
	for _, r := range text {
		if r == '=' {
			if pads++; position >= 2 && position+pads >= 4 {
				return Bytes(out.String()), nil
			}
			continue
		}
		digit := strings.IndexRune(digits, r)
		if digit < 0 {
			continue
		}
		pads = 0
		bits = bits<<6 | digit
		if position > 0 {
			out.WriteByte(byte(bits >> (6 - 2*position)))
		}
		position = (position + 1) % 4
	}
	if position != 0 {
		return nil, errBinary
	}
	return Bytes(out.String()), nil
}
