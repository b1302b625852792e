package generate

import (
	"regexp"
	"strings"
)

// token matches one token of a template's text. Mutations and reductions work on tokens.
var token = regexp.MustCompile(`\{\{[-+]?|[-+]?\}\}|\{%[-+]?|[-+]?%\}|\{#[-+]?|[-+]?#\}|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\w+|\s+|\*\*|//|[=!<>]=|(?s:.)`)

// Tokens splits a template's text into tokens. Joined together, the tokens give the same text.
func Tokens(text string) []string { return token.FindAllString(text, -1) }

// mutate deletes, duplicates, swaps or replaces one or two tokens.
func (g *generator) mutate(text string) string {
	tokens := Tokens(text)
	for range 1 + g.random.IntN(2) {
		if len(tokens) == 0 {
			return text
		}
		i, j := g.random.IntN(len(tokens)), g.random.IntN(len(tokens))
		switch g.random.IntN(5) {
		case 0, 1:
			tokens[i] = ""
		case 2:
			tokens[i] += tokens[i]
		case 3:
			tokens[i], tokens[j] = tokens[j], tokens[i]
		case 4:
			tokens[i] = g.oneOf(strays)
		}
	}
	return strings.Join(tokens, "")
}

var strays = []string{
	"{{", "}}", "{%", "%}", "{#", "#}", "-", "+", "(", ")", "[", "]", "{", "}", ",", ".", ":", "|", "~", "*", "**", "=", "==", "!", "!=", "<", "&", "?", "@", "`", "\\", "'", "\"", "$",
	"if", "else", "is", "in", "not", "and", "or", "for", "end", "none", "None", "true", "True", "1", "1.", ".5", "0", "1x", "é", "\n", " ", "endif", "endfor", "endset", "as", "with", "import", "_", "self", "loop", "0_", "1__0", "1e", "0b2",
}
