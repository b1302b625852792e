package py

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// strTranslate looks every code point up in a table, by its number.
func strTranslate(b *Budget, s string, args []Value) (Value, error) {
	var translated strings.Builder
	for _, r := range s {
		item, err := Item(b, args[0], Int{small: int64(r)})
		if e, ok := errors.AsType[*Error](err); ok && isLookupError(e) {
			item, err = Int{small: int64(r)}, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := translation(item)
		if err != nil {
			return nil, err
		}
		if err := b.Append(translated.Len(), len(text)); err != nil {
			return nil, err
		}
		translated.WriteString(text)
	}
	return Str(translated.String()), nil
}

func translation(item Value) (string, error) {
	switch item := item.(type) {
	case None:
		return "", nil
	case Str:
		return string(item), nil
	case Markup:
		return string(item), nil
	case Int, Bool:
		n, err := Index(item)
		if err != nil {
			return "", err
		}
		return character(n, "character mapping must be in range(0x110000)")
	default:
		return "", typeError("character mapping must return integer, None or str")
	}
}

// character returns chr(n). It also refuses a surrogate, which UTF-8 cannot encode.
func character(n Int, outside string) (string, error) {
	r, ok := n.Int64()
	if !ok || r < 0 || r > utf8.MaxRune {
		return "", valueError("%s", outside)
	}
	if !utf8.ValidRune(rune(r)) {
		return "", exception("UnicodeEncodeError", "'utf-8' codec can't encode a character: surrogates not allowed")
	}
	return string(rune(r)), nil
}

// strMakeTrans makes a table for translate: from a dictionary, or from two texts of equal length and a third whose
// characters are deleted.
func strMakeTrans(b *Budget, _ Value, args []Value) (Value, error) {
	if _, ok := args[1].(absent); ok {
		return translationOf(args[0])
	}
	from, err := strArgument("maketrans", args[0])
	if err != nil {
		return nil, typeError("first maketrans argument must be a string if there is a second argument")
	}
	to, err := strArgument("maketrans", args[1])
	if err != nil {
		return nil, err
	}
	deleted := ""
	if _, ok := args[2].(absent); !ok {
		if deleted, err = strArgument("maketrans", args[2]); err != nil {
			return nil, err
		}
	}
	if utf8.RuneCountInString(from) != utf8.RuneCountInString(to) {
		return nil, valueError("the first two maketrans arguments must have equal length")
	}
	if err := b.Alloc((len(from) + len(deleted)) * partSize); err != nil {
		return nil, err
	}
	return pairTable(from, to, deleted)
}

func pairTable(from, to, deleted string) (Value, error) {
	table := NewDict()
	replacements := []rune(to)
	i := 0
	for _, r := range from {
		if err := table.Set(Int{small: int64(r)}, Int{small: int64(replacements[i])}); err != nil {
			return nil, err
		}
		i++
	}
	for _, r := range deleted {
		if err := table.Set(Int{small: int64(r)}, None{}); err != nil {
			return nil, err
		}
	}
	return table, nil
}

func translationOf(v Value) (Value, error) {
	given, ok := v.(*Dict)
	if !ok {
		return nil, typeError("if you give only one argument to maketrans it must be a dict")
	}
	table := NewDict()
	for i := range given.Len() {
		key, value := given.Entry(i)
		if s, isText := TextOf(key); isText {
			if utf8.RuneCountInString(s) != 1 {
				return nil, valueError("string keys in translate table must be of length 1")
			}
			r, _ := utf8.DecodeRuneInString(s)
			key = Int{small: int64(r)}
		}
		switch key.(type) {
		case Int, Bool:
		default:
			return nil, typeError("keys in translate table must be strings or integers")
		}
		if err := table.Set(key, value); err != nil {
			return nil, err
		}
	}
	return table, nil
}
