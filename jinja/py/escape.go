package py

import "strings"

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// longestEscape is the length of the longest escape of a byte.
const longestEscape = len("&amp;")

// Escape does what markupsafe.escape does: Markup and objects with a method __html__ keep their HTML; other values are
// converted to a str and escaped.
func Escape(b *Budget, v Value) (Markup, error) {
	if html, ok, err := htmlOf(b, v); err != nil || ok {
		return html, err
	}
	s, err := ToStr(b, v)
	if err != nil {
		return "", err
	}
	special := 0
	for i := range len(s) {
		switch s[i] {
		case '&', '<', '>', '"', '\'':
			special++
		}
	}
	if special == 0 {
		return Markup(s), nil
	}
	if err := room(b, len(s), special, longestEscape-1); err != nil {
		return "", err
	}
	return Markup(htmlEscapes.Replace(s)), nil
}

// htmlOf returns the HTML of v, if v is a Markup, or an object with a method __html__.
func htmlOf(b *Budget, v Value) (html Markup, ok bool, err error) {
	if html, ok = v.(Markup); ok {
		return html, true, nil
	}
	object, ok := v.(Attributed)
	if !ok {
		return "", false, nil
	}
	method, ok, err := object.Attr(b, "__html__")
	if err != nil || !ok {
		return "", false, err
	}
	result, err := Call(b, method, Args{})
	if err != nil {
		return "", false, err
	}
	text, err := ToStr(b, result)
	return Markup(text), true, err
}
