package py

import (
	"unicode"
	"unicode/utf8"
)

// is reports whether r is in one of tables in the Unicode version of Python.
func is(r rune, tables ...*unicode.RangeTable) bool {
	return unicode.In(r, tables...) && (r < utf8.RuneSelf || !unicode.Is(laterThan14, r))
}

func isAlpha(r rune) bool { return is(r, unicode.L) }

func isDecimal(r rune) bool { return is(r, unicode.Nd) }

func isDigit(r rune) bool { return is(r, unicode.Nd, otherDigits) }

func isNumeric(r rune) bool { return is(r, unicode.N, otherNumerals) }

func isAlnum(r rune) bool { return is(r, unicode.L, unicode.N, otherNumerals) }

func isUpper(r rune) bool { return is(r, unicode.Lu, unicode.Other_Uppercase) }

func isLower(r rune) bool {
	return is(r, unicode.Ll, unicode.Other_Lowercase) && !unicode.Is(lowerAfter14, r)
}

func isTitle(r rune) bool { return is(r, unicode.Lt) }

func isCased(r rune) bool { return isUpper(r) || isLower(r) || isTitle(r) }

func isCaseIgnorable(r rune) bool {
	return is(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk, caseIgnorable)
}

func isPrintable(r rune) bool {
	return r == ' ' || is(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}

// isSpace is also true for the information separators, which are not spaces for package unicode.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func isLineBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	default:
		return false
	}
}

func startsIdentifier(r rune) bool {
	return r == '_' || is(r, unicode.L, unicode.Nl, unicode.Other_ID_Start) &&
		!unicode.In(r, notInIdentifiers, notFirstInIdentifiers)
}

func continuesIdentifier(r rune) bool {
	return is(r, unicode.L, unicode.Nl, unicode.Other_ID_Start, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc,
		unicode.Other_ID_Continue) && !unicode.Is(notInIdentifiers, r)
}

// appendUpper, appendTitle, appendLower and appendFold append what one code point becomes, which can be several.

func appendUpper(text []byte, r rune) []byte {
	if long, ok := longUpper[r]; ok {
		return append(text, long...)
	}
	return utf8.AppendRune(text, mapped(r, unicode.ToUpper))
}

func appendTitle(text []byte, r rune) []byte {
	if long, ok := longTitle[r]; ok {
		return append(text, long...)
	}
	return utf8.AppendRune(text, mapped(r, unicode.ToTitle))
}

func appendLower(text []byte, r rune) []byte {
	if r == 'İ' {
		return append(text, "i\u0307"...)
	}
	return utf8.AppendRune(text, mapped(r, unicode.ToLower))
}

func appendFold(text []byte, r rune) []byte {
	if folded, ok := foldings[r]; ok {
		return append(text, folded...)
	}
	// The small letters of Cherokee were added late, so it folds to the capital ones.
	if unicode.Is(unicode.Cherokee, r) {
		return utf8.AppendRune(text, unicode.ToUpper(r))
	}
	return appendLower(text, r)
}

func mapped(r rune, mapping func(rune) rune) rune {
	if to := mapping(r); to != r && !unicode.Is(laterThan14, r) {
		return to
	}
	return r
}

// decimalDigit returns the value of a decimal digit of any script, or -1.
func decimalDigit(r rune) int {
	if !isDecimal(r) {
		return -1
	}
	return int(digitValue(r))
}
