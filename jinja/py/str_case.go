package py

import "unicode/utf8"

func strUpper(b *Budget, s string, _ []Value) (Value, error) {
	return mapText(b, s, func(text []byte, _ int, r rune) []byte { return appendUpper(text, r) })
}

func strCasefold(b *Budget, s string, _ []Value) (Value, error) {
	return mapText(b, s, func(text []byte, _ int, r rune) []byte { return appendFold(text, r) })
}

func strLower(b *Budget, s string, _ []Value) (Value, error) {
	return mapText(b, s, func(text []byte, i int, r rune) []byte { return appendLowerAt(text, s, i, r) })
}

func strCapitalize(b *Budget, s string, _ []Value) (Value, error) {
	return mapText(b, s, func(text []byte, i int, r rune) []byte {
		if i == 0 {
			return appendTitle(text, r)
		}
		return appendLowerAt(text, s, i, r)
	})
}

func strTitle(b *Budget, s string, _ []Value) (Value, error) {
	inWord := false
	return mapText(b, s, func(text []byte, i int, r rune) []byte {
		afterCased := inWord
		inWord = isCased(r)
		if afterCased {
			return appendLowerAt(text, s, i, r)
		}
		return appendTitle(text, r)
	})
}

func strSwapCase(b *Budget, s string, _ []Value) (Value, error) {
	return mapText(b, s, func(text []byte, i int, r rune) []byte {
		switch {
		case isUpper(r):
			return appendLowerAt(text, s, i, r)
		case isLower(r):
			return appendUpper(text, r)
		default:
			return utf8.AppendRune(text, r)
		}
	})
}

// mapText returns the text that add appends for the code points of s; add gets the index of each.
func mapText(b *Budget, s string, add func(text []byte, i int, r rune) []byte) (Value, error) {
	if err := b.Text(len(s)); err != nil {
		return nil, err
	}
	text := make([]byte, 0, len(s))
	for i, r := range s {
		text = add(text, i, r)
	}
	return Str(text), b.Append(len(s), max(len(text)-len(s), 0))
}

const (
	capitalSigma = 'Σ'
	smallSigma   = "σ"
	finalSigma   = "ς"
)

// appendLowerAt appends the lower case of r, which is at s[i:]: a sigma at the end of a word has a special one.
func appendLowerAt(text []byte, s string, i int, r rune) []byte {
	if r != capitalSigma {
		return appendLower(text, r)
	}
	if endsWord(s[:i], s[i+len(smallSigma):]) {
		return append(text, finalSigma...)
	}
	return append(text, smallSigma...)
}

// endsWord reports whether the character between before and after ends a word: a letter is before it, and none after it.
func endsWord(before, after string) bool {
	for before != "" {
		r, size := utf8.DecodeLastRuneInString(before)
		before = before[:len(before)-size]
		if isCaseIgnorable(r) {
			continue
		}
		return isCased(r) && !beginsCased(after)
	}
	return false
}

func beginsCased(s string) bool {
	for _, r := range s {
		if !isCaseIgnorable(r) {
			return isCased(r)
		}
	}
	return false
}
