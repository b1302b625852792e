package py

// The character classes of Python's regular expressions that Jinja's patterns use.

// IsWordRune is \w.
func IsWordRune(r rune) bool { return r == '_' || isAlnum(r) }

// IsSpaceRune is \s.
func IsSpaceRune(r rune) bool { return isSpace(r) }

// IsDecimalRune is \d.
func IsDecimalRune(r rune) bool { return isDecimal(r) }
