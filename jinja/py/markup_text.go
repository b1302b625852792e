package py

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

func markupUnescape(b *Budget, s string, _ []Value) (Value, error) {
	text, err := unescape(b, s)
	return Str(text), err
}

// markupStripTags removes comments and tags, joins words by single spaces, and unescapes the rest.
func markupStripTags(b *Budget, s string, _ []Value) (Value, error) {
	if err := b.Alloc(len(s) * 3); err != nil {
		return nil, err
	}
	s = without(without(s, "<!--", "-->"), "<", ">")
	var words strings.Builder
	for word := range strings.FieldsFuncSeq(s, isSpace) {
		if words.Len() > 0 {
			words.WriteByte(' ')
		}
		words.WriteString(word)
	}
	text, err := unescape(b, words.String())
	return Str(text), err
}

// without removes the text from each opening to the next closing.
func without(s, opening, closing string) string {
	var rest strings.Builder
	for {
		before, inside, found := strings.Cut(s, opening)
		_, after, closed := strings.Cut(inside, closing)
		if !found || !closed {
			rest.WriteString(s)
			return rest.String()
		}
		rest.WriteString(before)
		s = after
	}
}

// referenceSize is how many bytes it takes to remember where a numeric reference is.
const referenceSize = 128

// numericReference also matches text that only looks like a reference, so that Go does not replace it.
var numericReference = regexp.MustCompile(`&#(?:([0-9]+);?|[xX]([0-9a-fA-F]+);?)?`)

// unescape replaces the character references of HTML. Python agrees with Go on those with a name; those with a number
// never become a control character.
func unescape(b *Budget, s string) (string, error) {
	if err := b.Text(len(s)); err != nil {
		return "", err
	}
	if err := b.Alloc(strings.Count(s, "&#") * referenceSize); err != nil {
		return "", err
	}
	var text strings.Builder
	last := 0
	for _, at := range numericReference.FindAllStringSubmatchIndex(s, -1) {
		text.WriteString(html.UnescapeString(s[last:at[0]]))
		last = at[1]
		char, err := referenced(s, at)
		if err != nil {
			return "", err
		}
		text.WriteString(char)
	}
	text.WriteString(html.UnescapeString(s[last:]))
	return text.String(), nil
}

// referenced returns the character of the match at in s.
func referenced(s string, at []int) (string, error) {
	var n int64
	var err error
	switch {
	case at[3]-at[2] > maxDigits:
		return "", tooManyDigits()
	case at[2] >= 0:
		n, err = strconv.ParseInt(s[at[2]:at[3]], 10, 32)
	case at[4] >= 0:
		n, err = strconv.ParseInt(s[at[4]:at[5]], 16, 32)
	default:
		return s[at[0]:at[1]], nil
	}
	return charReferenced(rune(n), err != nil), nil
}

func charReferenced(r rune, tooLarge bool) string {
	switch {
	case tooLarge || r == 0 || !utf8.ValidRune(r):
		return string(utf8.RuneError)
	case r >= 0x80 && r < 0xa0:
		// The characters that Windows has instead of control characters.
		return html.UnescapeString(fmt.Sprintf("&#%d;", r))
	case isNoCharacter(r):
		return ""
	default:
		return string(r)
	}
}

func isNoCharacter(r rune) bool {
	switch r {
	case '\t', '\n', '\f', '\r':
		return false
	default:
		return r < 0x20 || r == 0x7f || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
	}
}
