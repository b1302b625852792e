package jinja

import (
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

// wrapChunks divides text into parts between which a line may break: words, white space, and if hyphens is
// set also parts of words that end with a hyphen, and dashes.
func wrapChunks(text []rune, hyphens bool) [][]rune {
	var chunks [][]rune
	for start := 0; start < len(text); {
		end := chunkEnd(text, start, hyphens)
		chunks = append(chunks, text[start:end])
		start = end
	}
	return chunks
}

func chunkEnd(text []rune, start int, hyphens bool) int {
	if isWrapSpace(text[start]) {
		end := start + 1
		for end < len(text) && isWrapSpace(text[end]) {
			end++
		}
		return end
	}
	if n := dashLength(text, start); n > 0 && hyphens {
		return start + n
	}
	for end := start + 1; ; end++ {
		switch {
		case end == len(text) || isWrapSpace(text[end]):
			return end
		case !hyphens:
		case isHyphen(text, end):
			return end + 1
		case dashLength(text, end) > 0:
			return end
		}
	}
}

// dashLength returns how many hyphens at i make a dash between words, as in "one--two"; 0 if they do not.
func dashLength(text []rune, i int) int {
	if i == 0 || !isWordOrPunctuation(text[i-1]) {
		return 0
	}
	end := i
	for end < len(text) && text[end] == '-' {
		end++
	}
	if end-i < 2 || end == len(text) || !py.IsWordRune(text[end]) {
		return 0
	}
	return end - i
}

// isHyphen reports whether a word may be divided after index i: at a hyphen with letters on both sides.
func isHyphen(text []rune, i int) bool {
	return text[i] == '-' && hasLetters(text, i, -1) && hasLetters(text, i, 1)
}

// hasLetters reports whether two letters follow index i in the direction of step, possibly with a hyphen between them.
func hasLetters(text []rune, i, step int) bool {
	at := func(n int) rune {
		if n < 0 || n >= len(text) {
			return ' '
		}
		return text[n]
	}
	first, second := i+step, i+2*step
	if at(second) == '-' {
		second += step
	}
	return isLetter(at(first)) && isLetter(at(second))
}

// isWrapSpace reports whether a line may be divided at r: not at no-break spaces and the like.
func isWrapSpace(r rune) bool { return strings.ContainsRune("\t\n\v\f\r ", r) }

func isWordOrPunctuation(r rune) bool { return py.IsWordRune(r) || strings.ContainsRune(`!"'&.,?`, r) }

func isLetter(r rune) bool { return py.IsWordRune(r) && !py.IsDecimalRune(r) }
