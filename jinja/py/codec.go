package py

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// codec converts text to bytes and back, as an encoding of Python does. Handler is the name of an error handler.
type codec struct {
	encode func(b *Budget, s, handler string) (string, error)
	decode func(b *Budget, data, handler string) (string, error)
}

var codecs = map[string]codec{
	"utf_8":     {encodeUTF8, decodeUTF8},
	"utf_8_sig": {encodeSignedUTF8, decodeSignedUTF8},
	"ascii":     {encodeBelow(utf8.RuneSelf), decodeASCII},
	"latin_1":   {encodeBelow(0x100), decodeLatin1},
	"utf_16":    wide(2, binary.LittleEndian, true),
	"utf_16_le": wide(2, binary.LittleEndian, false),
	"utf_16_be": wide(2, binary.BigEndian, false),
	"utf_32":    wide(4, binary.LittleEndian, true),
	"utf_32_le": wide(4, binary.LittleEndian, false),
	"utf_32_be": wide(4, binary.BigEndian, false),
}

// codecAliases has other names of codecs, normalized.
var codecAliases = map[string][]string{
	"utf_8": {"utf8", "u8", "utf", "cp65001", "utf8_ucs2", "utf8_ucs4"},
	"ascii": {
		"646", "ansi_x3.4_1968", "ansi_x3_4_1968", "ansi_x3.4_1986", "cp367", "csascii", "ibm367", "iso646_us",
		"iso_646.irv_1991", "iso_ir_6", "us", "us_ascii",
	},
	"latin_1": {
		"8859", "cp819", "csisolatin1", "ibm819", "iso8859", "iso8859_1", "iso_8859_1", "iso_8859_1_1987",
		"iso_ir_100", "l1", "latin", "latin1",
	},
	"utf_16": {"u16", "utf16"}, "utf_16_le": {"unicodelittleunmarked", "utf_16le"},
	"utf_16_be": {"unicodebigunmarked", "utf_16be"},
	"utf_32":    {"u32", "utf32"}, "utf_32_le": {"utf_32le"}, "utf_32_be": {"utf_32be"},
}

// longestCodecName is more than the length of the longest name of an encoding, in any spelling.
const longestCodecName = 100

func codecNamed(name string) (codec, error) {
	if len(name) > longestCodecName {
		return codec{}, exception("LookupError", "unknown encoding")
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r != '.' && !isAlnum(r)
	})
	normal := strings.Join(words, "_")
	for known, aliases := range codecAliases {
		if slices.Contains(aliases, normal) {
			normal = known
		}
	}
	found, ok := codecs[normal]
	if !ok {
		return codec{}, exception("LookupError", "unknown encoding")
	}
	return found, nil
}

// codecArguments are the arguments of encode and decode: an encoding and an error handler.
func codecArguments(args []Value) (name, handler string, err error) {
	if name, err = strArgument("encode", args[0]); err != nil {
		return "", "", err
	}
	if handler, err = strArgument("encode", args[1]); err != nil {
		return "", "", err
	}
	if strings.Contains(name+handler, "\x00") {
		return "", "", valueError("embedded null character")
	}
	return name, handler, nil
}

func strEncode(b *Budget, s string, args []Value) (Value, error) {
	name, handler, err := codecArguments(args)
	if err != nil {
		return nil, err
	}
	found, err := codecNamed(name)
	if err != nil {
		return nil, err
	}
	data, err := found.encode(b, s, handler)
	return Bytes(data), err
}

func bytesDecode(b *Budget, self Value, args []Value) (Value, error) {
	name, handler, err := codecArguments(args)
	if err != nil {
		return nil, err
	}
	data, _ := self.(Bytes)
	if data == "" {
		// The empty text is valid in every encoding, even in one that does not exist.
		return Str(""), nil
	}
	found, err := codecNamed(name)
	if err != nil {
		return nil, err
	}
	text, err := found.decode(b, string(data), handler)
	return Str(text), err
}

const byteOrderMark = "\ufeff"

func encodeUTF8(_ *Budget, s, _ string) (string, error) { return s, nil }

func encodeSignedUTF8(b *Budget, s, _ string) (string, error) {
	return byteOrderMark + s, b.Text(len(s))
}

func decodeSignedUTF8(b *Budget, data, handler string) (string, error) {
	return decodeUTF8(b, strings.TrimPrefix(data, byteOrderMark), handler)
}

// encodeBelow encodes code points below limit as one byte each.
func encodeBelow(limit rune) func(b *Budget, s, handler string) (string, error) {
	return func(b *Budget, s, handler string) (string, error) {
		var data []byte
		for _, r := range s {
			if r < limit {
				data = append(data, byte(r))
				continue
			}
			replacement, err := unencodable(r, handler)
			if err != nil {
				return "", err
			}
			if err := b.Alloc(len(replacement)); err != nil {
				return "", err
			}
			data = append(data, replacement...)
		}
		return string(data), b.Text(len(data))
	}
}

func unencodable(r rune, handler string) (string, error) {
	switch handler {
	case "ignore":
		return "", nil
	case "replace":
		return "?", nil
	case "xmlcharrefreplace":
		return fmt.Sprintf("&#%d;", r), nil
	case "backslashreplace":
		return backslashed(r), nil
	case "strict", "surrogateescape", "surrogatepass":
		return "", exception("UnicodeEncodeError", "can't encode a character: ordinal not in range")
	default:
		return "", exception("LookupError", "unknown error handler name")
	}
}

// backslashed returns r as an escape in ASCII.
func backslashed(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}
