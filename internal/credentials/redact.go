package credentials

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// shortest is the length of the shortest text that is removed from others: shorter ones are everywhere.
const shortest = 6

// longToken is the length of a word in a credential from which it is removed by itself, as it may be a key in JSON.
const longToken = 16

// hidden stands for a credential in a text.
const hidden = "***"

// Redact returns a text without the credentials: without whole values, their lines and their long words, as they are, in JSON, in a
// URL, and in base64, alone or within something longer, also where a program has broken it into lines. It cannot know other forms.
func (c Credentials) Redact(text string) string {
	var hide []string
	add := func(value string) {
		if value = strings.TrimSpace(value); len(value) >= shortest {
			hide = append(hide, forms(value)...)
		}
	}
	for name, raw := range c {
		if name == CertificateAuthority {
			continue
		}
		value := string(raw)
		add(value)
		for line := range strings.Lines(value) {
			add(line)
		}
		for word := range strings.FieldsFuncSeq(strings.ReplaceAll(value, `\n`, "\n"), separatesWords) {
			if len(word) >= longToken {
				add(word)
			}
		}
	}
	slices.Sort(hide)
	return without(text, slices.Compact(hide))
}

// without returns a text without some values. Some programs break what they print into lines, so that the values are looked for in the
// text without white space, too. Values may overlap.
func without(text string, values []string) string {
	covered := make([]bool, len(text))
	everywhere := make([]int, len(text))
	for i := range everywhere {
		everywhere[i] = i
	}
	joined, places := withoutSpace(text)
	for _, value := range values {
		cover(covered, text, value, everywhere)
		cover(covered, joined, value, places)
	}
	var left strings.Builder
	for i := range len(text) {
		switch {
		case !covered[i]:
			left.WriteByte(text[i])
		case i == 0 || !covered[i-1]:
			left.WriteString(hidden)
		}
	}
	return left.String()
}

// withoutSpace returns a text without white space, also as it is written in JSON, and where each of its bytes is in the text.
func withoutSpace(text string) (joined string, places []int) {
	kept := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch {
		case strings.IndexByte(" \t\r\n", text[i]) >= 0:
		case text[i] == '\\' && i+1 < len(text) && strings.IndexByte("trn", text[i+1]) >= 0:
			i++
		default:
			kept, places = append(kept, text[i]), append(places, i)
		}
	}
	return string(kept), places
}

// cover marks all bytes that belong to a value, wherever it is in a text whose bytes are at places. The value may overlap with itself.
func cover(covered []bool, text, value string, places []int) {
	for start, done := 0, 0; ; start++ {
		i := strings.Index(text[start:], value)
		if i < 0 {
			return
		}
		start += i
		for j := max(start, done); j < start+len(value); j++ {
			from := places[j]
			if j > start {
				from = places[j-1] + 1 // with the white space before it
			}
			for ; from <= places[j]; from++ {
				covered[from] = true
			}
		}
		done = start + len(value)
	}
}

// secretKey is the name of a key of a Secret that has a secret, unless it is one of nameKey.
var (
	secretKey = regexp.MustCompile(`(?i)passw(?:or)?d|secret|token|private`)
	nameKey   = regexp.MustCompile(`(?i)(?:id|name)$`)
)

// Exposed reports whether a text, which is to be told as it is, has a secret. Identifiers may be part of it.
func (c Credentials) Exposed(text string) bool {
	secrets := Credentials{}
	for name, value := range c {
		key, extra := strings.CutPrefix(name, Extra)
		if extra && secretKey.MatchString(key) && !nameKey.MatchString(key) || slices.Contains([]string{AccessSecretKey, AccessToken, AccessSecret}, name) {
			secrets[name] = value
		}
	}
	return secrets.Redact(text) != text
}

// Clear overwrites the credentials in memory. Copies of them are not found.
func (c Credentials) Clear() {
	for _, value := range c {
		clear(value)
	}
}

func separatesWords(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+/=_-", r)
}

// forms returns how a value may be written in a text.
func forms(value string) []string {
	all := []string{
		value, url.QueryEscape(value), url.PathEscape(value),
		base64.StdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
	}
	if quoted, err := json.Marshal(value); err == nil {
		text := string(quoted[1 : len(quoted)-1])
		all = append(all, text, strings.ReplaceAll(text, "/", `\/`)) // as Ceph writes it
	}
	for offset := range 3 {
		// Of the first and the last characters, some bits are of what is around the value.
		padded := append(make([]byte, offset), value...)
		first, last := (offset*8+5)/6, len(padded)*8/6
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, encoding.EncodeToString(padded)[first:last])
		}
	}
	return all
}
