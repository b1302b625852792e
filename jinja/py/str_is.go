package py

// strIs returns a method that reports whether a text is not empty, and all its code points are of a kind.
func strIs(kind func(rune) bool) strMethod {
	return func(_ *Budget, s string, _ []Value) (Value, error) {
		return Bool(s != "" && all(s, kind)), nil
	}
}

func all(s string, kind func(rune) bool) bool {
	for _, r := range s {
		if !kind(r) {
			return false
		}
	}
	return true
}

func strIsASCII(_ *Budget, s string, _ []Value) (Value, error) { return Bool(isASCII(s)), nil }

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func strIsPrintable(_ *Budget, s string, _ []Value) (Value, error) {
	return Bool(all(s, isPrintable)), nil
}

func strIsIdentifier(_ *Budget, s string, _ []Value) (Value, error) {
	for i, r := range s {
		if i == 0 && !startsIdentifier(r) || i > 0 && !continuesIdentifier(r) {
			return Bool(false), nil
		}
	}
	return Bool(s != ""), nil
}

func strIsUpper(_ *Budget, s string, _ []Value) (Value, error) {
	return Bool(all(s, func(r rune) bool { return !isLower(r) && !isTitle(r) }) && !all(s, not(isUpper))), nil
}

func strIsLower(_ *Budget, s string, _ []Value) (Value, error) {
	return Bool(all(s, func(r rune) bool { return !isUpper(r) && !isTitle(r) }) && !all(s, not(isLower))), nil
}

func not(kind func(rune) bool) func(rune) bool {
	return func(r rune) bool { return !kind(r) }
}

// strIsTitle reports whether every word begins with a capital letter and has no other.
func strIsTitle(_ *Budget, s string, _ []Value) (Value, error) {
	inWord, cased := false, false
	for _, r := range s {
		capital := isUpper(r) || isTitle(r)
		if capital == inWord && (capital || isLower(r)) {
			return Bool(false), nil
		}
		inWord = capital || isLower(r)
		cased = cased || inWord
	}
	return Bool(cased), nil
}
