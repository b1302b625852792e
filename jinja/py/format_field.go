package py

import (
	"strings"
	"unicode/utf8"
)

// formatField is the next part of a text that str.format formats: literal text, and perhaps a replacement field.
type formatField struct {
	literal string
	isField bool
	name    string
	// conversion is the character after an exclamation mark, or noConversion.
	conversion rune
	spec       string
}

const noConversion rune = -1

// nextField parses the next part of text, which is not empty, and returns the rest.
func nextField(text string) (field formatField, rest string, err error) {
	i := strings.IndexAny(text, "{}")
	if i < 0 {
		return formatField{literal: text}, "", nil
	}
	brace, rest := text[i], text[i+1:]
	switch {
	case rest != "" && rest[0] == brace:
		return formatField{literal: text[:i+1]}, rest[1:], nil
	case brace == '}':
		return formatField{}, "", valueError("Single '}' encountered in format string")
	case rest == "":
		return formatField{}, "", valueError("Single '{' encountered in format string")
	}
	field, rest, err = parseField(rest)
	field.literal = text[:i]
	return field, rest, err
}

// parseField parses a replacement field after its opening brace.
func parseField(text string) (field formatField, rest string, err error) {
	field = formatField{isField: true, conversion: noConversion}
	end, err := nameEnd(text)
	if err != nil {
		return field, "", err
	}
	field.name = text[:end]
	mark, rest := text[end], text[end+1:]
	if mark == '!' {
		var size int
		if rest == "" {
			return field, "", valueError("end of string while looking for conversion specifier")
		}
		field.conversion, size = utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		if rest == "" {
			return field, "", valueError("unmatched '{' in format spec")
		}
		mark, rest = rest[0], rest[1:]
		if mark != '}' && mark != ':' {
			return field, "", valueError("expected ':' after conversion specifier")
		}
	}
	if mark == '}' {
		return field, rest, nil
	}
	field.spec, rest, err = parseFieldSpec(rest)
	return field, rest, err
}

// nameEnd returns where the name of a field ends; an item in brackets can contain any character but the closing bracket.
func nameEnd(text string) (int, error) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			return 0, valueError("unexpected '{' in field name")
		case '[':
			item := strings.IndexByte(text[i:], ']')
			if item < 0 {
				return 0, valueError("expected '}' before end of string")
			}
			// The bracket itself is an ordinary character of the name.
			i += item - 1
		case '}', ':', '!':
			return i, nil
		}
	}
	return 0, valueError("expected '}' before end of string")
}

func parseFieldSpec(text string) (spec, rest string, err error) {
	depth := 1
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return text[:i], text[i+1:], nil
		}
	}
	return "", "", valueError("unmatched '{' in format spec")
}

// fieldPath is the name of a field: an argument, followed by attributes and items of it.
type fieldPath struct{ rest string }

// pathStep is one attribute or item.
type pathStep struct {
	isAttribute bool
	name        string
}

func (p *fieldPath) first() string { return p.until(".[") }

// until takes the text before any of ends.
func (p *fieldPath) until(ends string) string {
	i := strings.IndexAny(p.rest, ends)
	if i < 0 {
		i = len(p.rest)
	}
	name := p.rest[:i]
	p.rest = p.rest[i:]
	return name
}

// next takes one step; more is false if there is none.
func (p *fieldPath) next() (step pathStep, more bool, err error) {
	if p.rest == "" {
		return pathStep{}, false, nil
	}
	mark := p.rest[0]
	p.rest = p.rest[1:]
	switch mark {
	case '.':
		step = pathStep{isAttribute: true, name: p.until(".[")}
	case '[':
		step.name = p.until("]")
		if p.rest == "" {
			return step, false, valueError("Missing ']' in format string")
		}
		p.rest = p.rest[1:]
	default:
		return step, false, valueError("Only '.' or '[' may follow ']' in format field specifier")
	}
	if step.name == "" {
		return step, false, valueError("Empty attribute in format string")
	}
	return step, true, nil
}

// fieldNumber returns the number that name is, if it is one, with the digits of any script.
func fieldNumber(name string) (n int, isNumber bool, err error) {
	n, read, ok := leadingNumber(name)
	if !ok {
		return 0, false, valueError("Too many decimal digits in format string")
	}
	return n, name != "" && read == len(name), nil
}
