package py

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

func decodeUTF8(b *Budget, data, handler string) (string, error) {
	if utf8.ValidString(data) {
		return data, nil
	}
	return decode(b, data, handler, func(data string) (rune, int) {
		r, size := utf8.DecodeRuneInString(data)
		if r == utf8.RuneError && size == 1 {
			return -1, malformed(data)
		}
		return r, size
	})
}

func decodeASCII(b *Budget, data, handler string) (string, error) {
	return decode(b, data, handler, func(data string) (rune, int) {
		if data[0] >= utf8.RuneSelf {
			return -1, 1
		}
		return rune(data[0]), 1
	})
}

func decodeLatin1(b *Budget, data, handler string) (string, error) {
	return decode(b, data, handler, func(data string) (rune, int) { return rune(data[0]), 1 })
}

// decode takes one code point after the other from data by next, which gives -1 for so many bytes that are none.
func decode(b *Budget, data, handler string, next func(data string) (rune, int)) (string, error) {
	if err := room(b, 0, len(data), 2); err != nil {
		return "", err
	}
	var text strings.Builder
	for data != "" {
		r, size := next(data)
		if r >= 0 {
			text.WriteRune(r)
		} else {
			replacement, err := undecodable(data[:size], handler)
			if err != nil {
				return "", err
			}
			text.WriteString(replacement)
		}
		data = data[size:]
	}
	return text.String(), nil
}

func undecodable(data, handler string) (string, error) {
	switch handler {
	case "ignore":
		return "", nil
	case "replace":
		return "\ufffd", nil
	case "backslashreplace":
		var text strings.Builder
		for i := range len(data) {
			fmt.Fprintf(&text, `\x%02x`, data[i])
		}
		return text.String(), nil
	case "xmlcharrefreplace", "namereplace":
		return "", typeError("don't know how to handle UnicodeDecodeError in error callback")
	case "strict", "surrogateescape", "surrogatepass":
		return "", exception("UnicodeDecodeError", "can't decode bytes: invalid byte")
	default:
		return "", exception("LookupError", "unknown error handler name")
	}
}

// malformed is how many bytes at the beginning of data one replacement stands for: those that could begin a code point,
// at least one.
func malformed(data string) int {
	lead, n := data[0], 0
	lo, hi := byte(0x80), byte(0xbf)
	switch {
	case lead >= 0xc2 && lead <= 0xdf:
		n = 1
	case lead >= 0xe0 && lead <= 0xef:
		n = 2
	case lead >= 0xf0 && lead <= 0xf4:
		n = 3
	}
	switch lead {
	case 0xe0:
		lo = 0xa0
	case 0xed:
		hi = 0x9f
	case 0xf0:
		lo = 0x90
	case 0xf4:
		hi = 0x8f
	}
	size := 1
	for ; size <= n && size < len(data) && data[size] >= lo && data[size] <= hi; size++ {
		lo, hi = 0x80, 0xbf
	}
	return size
}
