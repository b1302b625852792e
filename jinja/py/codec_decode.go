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

// decode takes one code point after another from data. Next returns a code point and its length, or -1 and how many bytes
// are invalid.
func decode(b *Budget, data, handler string, next func(data string) (rune, int)) (string, error) {
	if err := b.Alloc(len(data) * 2); err != nil {
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
	return text.String(), b.Text(text.Len())
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

// malformed returns how many bytes at the beginning of data one replacement represents: as many as can begin a code point,
// and at least one.
func malformed(data string) int {
	size := 1
	for size < min(len(data), utf8.UTFMax) && !utf8.FullRuneInString(data[:size+1]) {
		size++
	}
	return size
}
