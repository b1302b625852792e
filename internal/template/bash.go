package template

import (
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

// toBash is the filter tobash.
//
// Contract: it "escapes a string or numeric value so that it doesn't contain newlines and is
// interpreted as a single token by Bash or compatible shells".
func toBash(b *py.Budget, v py.Value, args py.Args) (py.Value, error) {
	if _, err := py.Bind("tobash", args); err != nil {
		return nil, err
	}
	text, err := finalize(b, v)
	if err != nil {
		return nil, err
	}
	if strings.ContainsRune(text, 0) {
		return nil, &py.Error{Exception: "ValueError", Message: "tobash cannot quote a NUL character: no argument of a program can have one"}
	}
	const quotes, newline = len(`''`), len(`$'\n'`)
	size := len(text) + strings.Count(text, "'")*len(quotedQuote) + (strings.Count(text, "\n")+1)*(quotes+newline)
	if err := b.Text(size); err != nil {
		return nil, err
	}
	return py.Str(bashWord(text)), nil
}

// quotedQuote ends a string in single quotes, adds a single quote in double quotes, and begins another string.
const quotedQuote = `'"'"'`

// bashWord returns text, which has no NUL character, as one word. It has the form of PaV 0.1, so that a definition
// yields the same pod.
func bashWord(text string) string {
	if text == "" {
		return "''"
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.ContainsFunc(line, needsQuotes) {
			lines[i] = "'" + strings.ReplaceAll(line, "'", quotedQuote) + "'"
		}
	}
	return strings.Join(lines, `$'\n'`)
}

func needsQuotes(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	default:
		return !strings.ContainsRune("@%+=:,./-_", r)
	}
}
