package jinja

import (
	"regexp"
	"strings"

	"github.com/albertofaria/pav/jinja/py"
)

// These patterns are for words in which asciiWord has replaced characters beyond ASCII. They do not check what follows a
// host.
var (
	linkHost = regexp.MustCompile(`(?i)^(?:` +
		`(?:https?://|www\.)(?:(?:[\w%-]+\.)+)?(?:[a-z]{2,63}|xn--[\w%]{2,59})` +
		`|(?:[\w%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil)` +
		`|https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[(?:[\da-f]{0,4}:){2}(?:[\da-f]{0,4}:?){1,6}\])` +
		`)(?::\d{1,5})?$`)
	mailAddress = regexp.MustCompile(`^\S+@\w[\w.-]*\.\w+$`)
	urlScheme   = regexp.MustCompile(`^[\w.+-]{2,}:/{0,2}$`)
)

// A pattern takes many steps for each character, which is slow for hosts that are longer than real ones.
const (
	longHost     = 1024
	patternSteps = 64
)

// asciiWord replaces what is not ASCII by what the patterns treat alike: in them, letters are all alike but for those of
// ASCII, for four of which there are others that are the same without regard to case.
func asciiWord(word string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x80:
			return r
		case r == 'İ' || r == 'ı':
			return 'i'
		case r == 'ſ':
			return 's'
		case r == '\u212a':
			return 'k'
		case py.IsDecimalRune(r):
			return '0'
		case py.IsWordRune(r):
			return '_'
		}
		return '!'
	}, word)
}

// linker turns words of a text that look like addresses into links. The text is HTML already.
type linker struct {
	budget *py.Budget
	// attributes are those of each link.
	attributes string
	schemes    []string
	// trim shortens the text of a link.
	trim func(text string) (string, error)
}

// The brackets that may surround an address in a text.
var linkBrackets = [][2]string{{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}}

// link turns word into a link if it is an address, without the punctuation around it.
func (l *linker) link(word string) (string, error) {
	if err := l.budget.Alloc(4 * len(word)); err != nil {
		return "", err
	}
	rest := trimPrefixes(word, "(", "<", "&lt;")
	head := word[:len(word)-len(rest)]
	middle := trimSuffixes(rest, ")", ">", ".", ",", "\n", "&gt;")
	tail := rest[len(middle):]
	for _, bracket := range linkBrackets {
		middle, tail = balance(middle, tail, bracket[0], bracket[1])
	}
	linked, err := l.linkAddress(middle)
	return head + linked + tail, err
}

func trimPrefixes(text string, prefixes ...string) string {
	for trimmed := true; trimmed; {
		trimmed = false
		for _, prefix := range prefixes {
			if rest, found := strings.CutPrefix(text, prefix); found {
				text, trimmed = rest, true
			}
		}
	}
	return text
}

func trimSuffixes(text string, suffixes ...string) string {
	for trimmed := true; trimmed; {
		trimmed = false
		for _, suffix := range suffixes {
			if rest, found := strings.CutSuffix(text, suffix); found {
				text, trimmed = rest, true
			}
		}
	}
	return text
}

// balance moves closing brackets from tail to middle, as many as middle opens.
func balance(middle, tail, begin, end string) (string, string) {
	open := strings.Count(middle, begin)
	if open <= strings.Count(middle, end) {
		return middle, tail
	}
	whole, length := tail, 0
	for range min(open, strings.Count(tail, end)) {
		length += strings.Index(whole[length:], end) + len(end)
	}
	return middle + whole[:length], whole[length:]
}

func (l *linker) linkAddress(word string) (string, error) {
	plain := asciiWord(word)
	isLink, err := l.isLink(plain)
	if err != nil {
		return "", err
	}
	address, isMail := strings.CutPrefix(word, "mailto:")
	switch {
	case isLink:
		text, err := l.trim(word)
		if !strings.HasPrefix(word, "https://") && !strings.HasPrefix(word, "http://") {
			word = "https://" + word
		}
		return `<a href="` + word + `"` + l.attributes + `>` + text + `</a>`, err
	case isMail && mailAddress.MatchString(plain[len("mailto:"):]):
		return `<a href="` + word + `">` + address + `</a>`, nil
	case !strings.HasPrefix(word, "www.") && !strings.Contains(word, ":") && mailAddress.MatchString(plain):
		return `<a href="mailto:` + word + `">` + word + `</a>`, nil
	}
	return l.linkSchemes(word)
}

// isLink reports whether a word is a URL, or probably a host, with or without a path.
func (l *linker) isLink(word string) (bool, error) {
	path := 0
	for _, scheme := range []string{"http://", "https://"} {
		if n := len(scheme); len(word) >= n && strings.EqualFold(word[:n], scheme) {
			path = n
		}
	}
	host := word
	if end := strings.IndexAny(word[path:], "/?#"); end >= 0 {
		host = word[:path+end]
	}
	if len(host) > longHost {
		if err := l.budget.Step(patternSteps * len(host)); err != nil {
			return false, err
		}
	}
	return linkHost.MatchString(host), nil
}

// linkSchemes adds a link for each scheme that word begins with. It continues with the link that it has made.
func (l *linker) linkSchemes(word string) (string, error) {
	for _, scheme := range l.schemes {
		if word == scheme || !strings.HasPrefix(word, scheme) {
			continue
		}
		if err := l.budget.Text(2*len(word) + len(l.attributes)); err != nil {
			return "", err
		}
		word = `<a href="` + word + `"` + l.attributes + `>` + word + `</a>`
	}
	return word, nil
}
