package credentials

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	c := Credentials{
		AccessKeyID: []byte("short"), AccessSecretKey: []byte("secret-secret\n"), "extra/inner": []byte("secret"),
		ServiceAccount: []byte("{\n  \"private\": \"0123456789\"\n}\n"), CertificateAuthority: []byte("certificate"),
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("secret-secret"))
	for text, want := range map[string]string{
		"":                                      "",
		"short is everywhere":                   "short is everywhere",
		"user has secret-secret.":               "user has ***.",
		"and secret":                            "and ***",
		"line \"private\": \"0123456789\" here": "line *** here",
		"in base64 " + encoded:                  "in base64 ***",
		"the certificate":                       "the certificate",
		"twice secret-secret-secret":            "twice ***",
		"both secret-secretsecret":              "both ***",
		"broken secret-\n  secret, and after":   "broken ***, and after",
		"not se cured":                          "not se cured",
	} {
		if got := c.Redact(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A secret may be written as part of something longer.
func TestRedact_FindsASecretInEachForm(t *testing.T) {
	const secret = `wJalr/XUtn+FE"MI&K7`
	c := Credentials{AccessSecretKey: []byte(secret + "\n")}
	quoted, err := json.Marshal(map[string]string{"key": secret})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{
		"as it is": "key=" + secret + ";", "in JSON": string(quoted), "in a query": "?key=" + url.QueryEscape(secret), "in a path": "/" + url.PathEscape(secret),
		"in JSON of Ceph": strings.ReplaceAll(string(quoted), "/", `\/`),
	}
	for name, encoding := range map[string]*base64.Encoding{"base64": base64.StdEncoding, "base64 for URLs": base64.RawURLEncoding} {
		for _, before := range []string{"", "u:", "us:", "user:"} {
			for _, after := range []string{"", "\n", "\r\n", "@host"} {
				texts[name+" of "+before+"…"+strings.TrimSpace(after)+string(rune('0'+len(after)))] = "Basic " + encoding.EncodeToString([]byte(before+secret+after))
			}
		}
	}
	for before := range 76 {
		line := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", before) + secret + "\n"))
		for end, name := range map[string]string{"\n": "line feeds", "\r\n": "CRLF", `\n`: "line feeds in JSON"} {
			texts[fmt.Sprintf("base64 with %s, after %d bytes", name, before)] = wrapped(line, 20, end)
		}
	}
	for name, text := range texts {
		got := c.Redact(text)
		if !strings.Contains(got, hidden) || leaks(got, secret) {
			t.Errorf("%s: %q became %q", name, text, got)
		}
	}
}

// wrapped breaks a text into lines, as base64 does.
func wrapped(text string, width int, end string) string {
	var lines strings.Builder
	for ; len(text) > width; text = text[width:] {
		lines.WriteString(text[:width] + end)
	}
	return lines.String() + text
}

// leaks reports whether a text has more than three bytes of a secret, also in base64.
func leaks(text, secret string) bool {
	text = strings.NewReplacer("\n", "", "\r", "", `\n`, "").Replace(text)
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for word := range strings.FieldsSeq(text) {
			word = strings.TrimRight(word, "=")
			for cut := range 4 {
				if decoded, err := encoding.DecodeString(word[min(cut, len(word)):]); err == nil && has(string(decoded), secret) {
					return true
				}
			}
		}
	}
	return has(text, secret)
}

func has(text, secret string) bool {
	for i := 4; i <= len(secret); i++ {
		if strings.Contains(text, secret[i-4:i]) {
			return true
		}
	}
	return false
}

// A client of GCS gets its key in JSON, and prints it without.
func TestRedact_FindsAKeyInJSON(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----\n"
	account, err := json.Marshal(map[string]string{"private_key": key, "private_key_id": "0123456789abcdef0123456789abcdef01234567"})
	if err != nil {
		t.Fatal(err)
	}
	got := Credentials{ServiceAccount: account}.Redact("id 0123456789abcdef0123456789abcdef01234567, key " + key)
	for _, part := range []string{"0123456789", "MIIEvQ", "BKcwgg"} {
		if strings.Contains(got, part) {
			t.Errorf("%q is left in %q", part, got)
		}
	}
}

// A pod may leave as many lines as fit, to keep its node busy.
func TestRedact_OfTheMostThatMayBe(t *testing.T) {
	c, line := Credentials{}, 0
	for _, name := range []string{AccessKeyID, AccessSecretKey, AccessToken} {
		value := strings.Builder{}
		for ; value.Len()+8 <= MaxValue; line++ {
			fmt.Fprintf(&value, "%07d\n", line)
		}
		c[name] = []byte(value.String())
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 4<<10)
	if got := c.Redact(text + "0000007"); got != text+hidden {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestExposed(t *testing.T) {
	c := Credentials{AccessKeyID: []byte("key-of-user"), AccessSecretKey: []byte("secret-secret"), "extra/USER": []byte("the-user"),
		"extra/dbPassword": []byte("the-password"), "extra/SECRET_ID": []byte("the-secret-id")}
	for text, want := range map[string]bool{
		"the-password": true, "the-secret-id": false,
		"": false, "key-of-user": false, "the-user": false, "secret-secret": true, "a/secret-secret.b": true} {
		if got := c.Exposed(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func TestClear(t *testing.T) {
	value := []byte("secret")
	Credentials{AccessKeyID: value, AccessToken: nil}.Clear()
	if !bytes.Equal(value, make([]byte, 6)) {
		t.Errorf("left is %q", value)
	}
}
