package credentials

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
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
// URL, and in base64, alone or within something longer. It cannot know other forms.
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
	// A value may contain another one.
	slices.SortFunc(hide, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, value := range slices.Compact(hide) {
		text = strings.ReplaceAll(text, value, hidden)
	}
	return text
}

// Exposed reports whether a text, which is to be told as it is, has a secret. Identifiers may be part of it.
func (c Credentials) Exposed(text string) bool {
	secrets := Credentials{}
	for _, name := range []string{AccessSecretKey, AccessToken, AccessSecret} {
		secrets[name] = c[name]
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
		all = append(all, string(quoted[1:len(quoted)-1]))
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
