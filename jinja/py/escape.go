package py

import "strings"

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// longestEscape is how many bytes one byte can become.
const longestEscape = len("&amp;")

// Escape is markupsafe.escape: Markup and what gives HTML of itself stay as they are, all else is made a str and escaped.
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

// htmlOf is what v gives as HTML of itself, if it does: a Markup, or an object with a method __html__.
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
