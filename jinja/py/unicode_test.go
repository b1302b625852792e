package py

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"unicode"
	"unicode/utf8"
)

// unicodeHint is the advice that is printed after a difference.
const unicodeHint = "if Go has a later version of Unicode, laterThan14 must have what came with it"

// checksum calls add for every valid code point, and returns the checksum of the data that add appended.
func checksum(add func(data []byte, r rune) []byte) string {
	var data []byte
	for r := range rune(unicode.MaxRune + 1) {
		if utf8.ValidRune(r) {
			data = add(data, r)
		}
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// TestKindsOfCodePoints compares all code points with Python 3.11, from which the checksums come.
func TestKindsOfCodePoints(t *testing.T) {
	tests := map[string]struct {
		is   func(r rune) bool
		want string
	}{
		"isalpha":          {isAlpha, "b150c79d255e250857fd242d9e1d2cf6"},
		"isalnum":          {isAlnum, "4d7fb5acb212fa42dd319622572a4cd0"},
		"isdecimal":        {isDecimal, "b6731f9cc8032a30ba5c9bcaa071ced2"},
		"isdigit":          {isDigit, "c201d3a785c2ccedabf2e1c040e9429b"},
		"isnumeric":        {isNumeric, "012fa0cf2a599041ddf565e30ff54081"},
		"isspace":          {isSpace, "88c564e99693061ab01f87b51191b3e3"},
		"isupper":          {isUpper, "65e6d3227ad6a90e469c3b0fabad109a"},
		"islower":          {isLower, "102e93a5edb4755371ee1d943c0b033d"},
		"isprintable":      {isPrintable, "d35af14b1f8ed4ab975f5086bf4fbbee"},
		"isidentifier":     {startsIdentifier, "f83325f66312f436011a955b7770ce29"},
		"in an identifier": {continuesIdentifier, "7718e5ef0607ec90774c3a83a15b2de5"},
		"istitle":          {func(r rune) bool { return isUpper(r) || isTitle(r) }, "bf03a0aa4023ea1e454e8442fc290e29"},
		"before a final sigma": {
			func(r rune) bool { return endsWord("A"+string(r), "") },
			"253bffa409d51b3a00db86b6787e3a8a",
		},
		"after a final sigma": {
			func(r rune) bool { return endsWord("A", string(r)) },
			"0b1acb4d96f63e9368cca7557a973a30",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := checksum(func(data []byte, r rune) []byte {
				if test.is(r) {
					return append(data, 1)
				}
				return append(data, 0)
			})
			if got != test.want {
				t.Errorf("checksum of all code points: got %s, want %s; %s", got, test.want, unicodeHint)
			}
		})
	}
}

// TestCasesOfCodePoints compares all code points with Python 3.11, from which the checksums come.
func TestCasesOfCodePoints(t *testing.T) {
	tests := map[string]struct {
		mapping func(text []byte, r rune) []byte
		want    string
	}{
		"upper":    {appendUpper, "31df9533e296f889b13a6f5495e9048b"},
		"title":    {appendTitle, "140f74eeec050713395e36a5039a99c9"},
		"lower":    {appendLower, "df5f2dce2f27c6135470af16d1fb16ab"},
		"casefold": {appendFold, "78249183e488bf8968a161a80ec41e8b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := checksum(func(data []byte, r rune) []byte { return append(test.mapping(data, r), '\n') })
			if got != test.want {
				t.Errorf("checksum of all code points: got %s, want %s; %s", got, test.want, unicodeHint)
			}
		})
	}
}

// TestDigitsOfEveryScript compares the values of all decimal digits with Python 3.11, from which the checksum comes.
func TestDigitsOfEveryScript(t *testing.T) {
	got := checksum(func(data []byte, r rune) []byte { return append(data, byte(decimalDigit(r))) })
	if want := "b09ac2c9e5aecb70939bab0bf41b42ff"; got != want {
		t.Errorf("checksum of all code points: got %s, want %s; %s", got, want, unicodeHint)
	}
}
