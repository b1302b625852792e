package generate

import (
	"encoding/json"
	"fmt"
	"strings"
)

// context returns the JSON of the variables that the grammar uses. Most of the time, a variable has the same type in
// all cases. Its value, and the order of its mappings, differ from case to case.
func (g *generator) context() []byte {
	var members []string
	for _, variable := range variables {
		if g.random.IntN(60) == 0 {
			continue // so that any name may be undefined in some cases
		}
		value := variable.value(g)
		if g.random.IntN(100) == 0 {
			value = g.anyJSON()
		}
		members = append(members, fmt.Sprintf("%q: %s", variable.name, value))
	}
	return []byte("{" + strings.Join(members, ", ") + "}")
}

var variables = []struct {
	name  string
	value func(*generator) string
}{
	{"s", func(g *generator) string { return quote(g.pieces(plainStrings, 3)) }},
	{"u", func(g *generator) string { return quote(g.pieces(unusualStrings, 4)) }},
	{"p", func(g *generator) string { return quote(g.peculiar()) }},
	{"h", func(g *generator) string { return quote(g.oneOf(htmlTexts)) }},
	{"nl", func(g *generator) string { return quote(g.oneOf(longTexts)) }},
	{"m", func(g *generator) string { return quote(g.oneOf(numberTexts)) }},
	{"e", func(*generator) string { return `""` }},
	{"i", func(g *generator) string { return fmt.Sprint(g.random.IntN(60)) }},
	{"j", func(g *generator) string { return fmt.Sprint(g.random.IntN(20) - 10) }},
	{"k", func(g *generator) string { return fmt.Sprint(1 + g.random.IntN(9)) }},
	{"z", func(*generator) string { return "0" }},
	{"big", func(g *generator) string { return g.oneOf(bigIntegers) }},
	{"x", func(g *generator) string { return g.float() }},
	{"y", func(g *generator) string { return g.float() }},
	{"t", func(*generator) string { return "true" }},
	{"f", func(*generator) string { return "false" }},
	{"n", func(*generator) string { return "null" }},
	{"nums", func(g *generator) string {
		return g.list(6, func() string { return fmt.Sprint(g.random.IntN(12) - 2) })
	}},
	{"fl", func(g *generator) string { return g.list(4, g.float) }},
	{"words", func(g *generator) string { return g.list(6, func() string { return quote(g.oneOf(wordTexts)) }) }},
	{"mixed", func(g *generator) string { return g.list(5, g.anyJSON) }},
	{"empty", func(*generator) string { return "[]" }},
	{"nested", func(g *generator) string {
		return g.list(4, func() string { return g.list(3, func() string { return fmt.Sprint(g.random.IntN(5)) }) })
	}},
	{"pairs", func(g *generator) string {
		return g.list(4, func() string { return "[" + quote(g.oneOf(wordTexts)) + ", " + fmt.Sprint(g.random.IntN(5)) + "]" })
	}},
	{"pods", func(g *generator) string { return g.list(4, g.pod) }},
	{"d", func(g *generator) string { return g.object(4, func() string { return fmt.Sprint(g.random.IntN(5)) }) }},
	{"o", func(g *generator) string { return g.object(4, g.anyJSON) }},
	{"tree", func(g *generator) string { return g.tree(3) }},
	{"yaml", func(g *generator) string { return g.oneOf([]string{"true", "false", `"x"`}) }},
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return string(quoted)
}

func (g *generator) peculiar() string {
	var text strings.Builder
	for range g.random.IntN(6) {
		text.WriteRune(peculiarRunes[g.random.IntN(len(peculiarRunes))])
	}
	return text.String()
}

func (g *generator) float() string {
	if g.random.IntN(3) == 0 {
		return g.oneOf([]string{"0.0", "-0.0", "2.5", "1e16", "1e-5", "1.0", "3.0", "0.1", "1e300", "123456.789"})
	}
	return fmt.Sprintf("%d.%02d", g.random.IntN(200)-100, g.random.IntN(100))
}

func (g *generator) list(most int, item func() string) string {
	items := make([]string, g.random.IntN(most+1))
	for i := range items {
		items[i] = item()
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (g *generator) object(most int, value func() string) string {
	keys := g.random.Perm(len(keyTexts))[:g.random.IntN(most+1)]
	members := make([]string, len(keys))
	for i, key := range keys {
		members[i] = quote(keyTexts[key]) + ": " + value()
	}
	return "{" + strings.Join(members, ", ") + "}"
}

func (g *generator) pod() string {
	return fmt.Sprintf(`{"name": %s, "phase": %q, "restarts": %d, "labels": %s, "ready": %t}`,
		quote(g.oneOf(wordTexts)), g.oneOf([]string{"Running", "Pending", "running"}), g.random.IntN(4),
		g.object(2, func() string { return quote(g.oneOf(wordTexts)) }), g.random.IntN(2) == 0)
}

func (g *generator) tree(depth int) string {
	if depth == 0 {
		return "[]"
	}
	return g.list(2, func() string { return fmt.Sprintf(`{"n": %s, "kids": %s}`, quote(g.oneOf(wordTexts)), g.tree(depth-1)) })
}

func (g *generator) anyJSON() string {
	switch g.random.IntN(10) {
	case 0:
		return "null"
	case 1:
		return g.oneOf([]string{"true", "false"})
	case 2:
		return g.float()
	case 3:
		return quote(g.oneOf(unusualStrings))
	case 4:
		return g.list(3, func() string { return fmt.Sprint(g.random.IntN(5)) })
	case 5:
		return g.object(2, func() string { return quote(g.oneOf(wordTexts)) })
	case 6:
		return g.oneOf(bigIntegers)
	case 7:
		return fmt.Sprint(g.random.IntN(9) - 4)
	default:
		return quote(g.oneOf(wordTexts))
	}
}

var (
	wordTexts   = []string{"a", "b", "c", "Alpha", "alpha", "beta", "Gamma", "zeta", "é", "Z", "", "x y", "10", "9", "<i>"}
	keyTexts    = []string{"a", "b", "c", "name", "items", "A", "x y", "1", "é", "get", "z-1", "<k>"}
	numberTexts = []string{"42", "1.5", " 7 ", "1e3", "0x1f", "-3", "", "abc", "1_000", "٣", "inf", "nan", "0b11", "12abc", "-0.0", "1e400", "３"}
	bigIntegers = []string{"1234567890123", "-9223372036854775808", "9223372036854775807", "18446744073709551616", "123456789012345678901234567890", "4294967296"}
	htmlTexts   = []string{`<a href="x">T & C's</a>`, "<b>bold</b> &lt;i&gt;", "a < b > c", "<!-- c --> x  y\n z", "<p", "&nbsp;&amp;&#39;&eacute;&bogus;", "x <!-- <b> --> y", "<>", "a&b;c"}
	longTexts   = []string{"one\ntwo\n\nthree", "a\r\nb\rc", "the quick brown fox jumps over the lazy dog", "  lead\n  and trail  \n", "averyveryverylongwordwithoutspaces-and-hyphens-too", "x\u2028y\u0085z\x1cw", "tab\tbed\tline\n\tx", "\n"}
)
