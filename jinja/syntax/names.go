package syntax

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/runenames"
)

// runesByName is filled at the first \N{…} escape, which few templates have.
var runesByName = sync.OnceValue(func() map[string]rune {
	names := make(map[string]rune, 1<<16)
	for char := rune(0); char <= unicode.MaxRune; char++ {
		// Names in angle brackets (<control>, <CJK Ideograph>) are not names of single characters.
		if name := runenames.Name(char); name != "" && name[0] != '<' {
			names[name] = char
		}
	}
	return names
})

func runeNamed(name string) (rune, bool) {
	char, ok := runesByName()[strings.ToUpper(name)]
	return char, ok
}
