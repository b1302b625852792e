package generate

import (
	"fmt"
	"strconv"
	"strings"
)

// terminals generate parts for which a grammar is unsuitable. Each returns a pattern. The names in the pattern are
// expanded in turn.
var terminals = map[string]func(*generator) string{
	"EMPTY":     func(*generator) string { return "" },
	"STR":       (*generator).stringLiteral,
	"URLTEXT":   (*generator).urlText,
	"INT":       (*generator).integerLiteral,
	"FLOAT":     (*generator).floatLiteral,
	"SMALL":     func(g *generator) string { return strconv.Itoa(g.random.IntN(6)) },
	"TINY":      func(g *generator) string { return strconv.Itoa(g.random.IntN(4)) },
	"PERCENT":   (*generator).percentFormat,
	"SPEC":      (*generator).formatSpec,
	"FIELDS":    (*generator).formatCall,
	"TEXT":      func(g *generator) string { return escape(g.pieces(texts, 3)) },
	"RAW":       func(g *generator) string { return escape(g.pieces(rawTexts, 3)) },
	"YAML":      func(g *generator) string { return g.pieces(yamlTexts, 4) },
	"YAMLVALUE": func(g *generator) string { return escape(g.oneOf(yamlValues)) },
	"SP":        func(g *generator) string { return g.oneOf(layouts) },
	"BLANK":     func(g *generator) string { return g.pieces(blanks, 2) },
	"HTML":      func(g *generator) string { return g.quoted(htmlParts, 6) },
	"LONG":      (*generator).longText,
	"SPECS":     (*generator).formatSpecs,
	"PERCENTS":  (*generator).percentSpecs,
	"YAMLSOUP":  func(g *generator) string { return escape(g.pieces(yamlTokens, 12)) },
	"BLOCK":     (*generator).block,
	"UNICODE":   (*generator).unicodeLiteral,
}

// escape returns a pattern that expands to the text itself.
func escape(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func (g *generator) pieces(items []string, most int) string {
	var text strings.Builder
	for range 1 + g.random.IntN(most) {
		text.WriteString(g.oneOf(items))
	}
	return text.String()
}

func (g *generator) stringLiteral() string {
	quote := g.oneOf([]string{"'", "'", `"`})
	var text strings.Builder
	for range g.random.IntN(4) {
		items := plainStrings
		switch {
		case g.random.IntN(4) == 0:
			items = unusualStrings
		case g.random.IntN(8) == 0:
			items = stringEscapes
		case g.wild && g.random.IntN(40) == 0:
			items = []string{`\x`, `\u12`, `\N{nope}`, `\U99999999`, `\xg`}
		}
		text.WriteString(g.oneOf(items))
	}
	literal := quote + strings.ReplaceAll(text.String(), quote, `\`+quote) + quote
	if g.random.IntN(40) == 0 {
		literal += ` "b"`
	}
	return escape(literal)
}

// unicodeLiteral returns a string literal of characters with an unusual case, width, class or sort order.
func (g *generator) unicodeLiteral() string {
	var text strings.Builder
	for range 1 + g.random.IntN(4) {
		if g.random.IntN(3) == 0 {
			text.WriteString(g.oneOf(plainStrings))
		} else {
			text.WriteRune(peculiarRunes[g.random.IntN(len(peculiarRunes))])
		}
	}
	return escape("'" + strings.NewReplacer("'", "", `\`, "").Replace(text.String()) + "'")
}

func (g *generator) urlText() string {
	return escape("'" + strings.ReplaceAll(g.pieces(urlTexts, 5), "'", "") + "'")
}

// quoted returns a string literal of at most the given number of items.
func (g *generator) quoted(items []string, most int) string {
	return escape("'" + strings.ReplaceAll(g.pieces(items, most), "'", `\'`) + "'")
}

func (g *generator) longText() string {
	if g.random.IntN(3) == 0 {
		return g.oneOf([]string{"nl", "u", "h", "p", "s"})
	}
	return g.quoted(longParts, 14)
}

// formatSpecs returns replacement fields that all refer to the first argument.
func (g *generator) formatSpecs() string {
	var format strings.Builder
	for range 1 + g.random.IntN(2) {
		format.WriteString("{0" + g.oneOf([]string{"", "", "", "!r", "!s", "!a"}) + ":" + g.formatSpec() + "}|")
	}
	return format.String()
}

func (g *generator) percentSpecs() string {
	spec, _ := g.percentSpec("")
	return spec
}

func (g *generator) integerLiteral() string {
	n := g.random.Uint64() >> g.random.IntN(64)
	switch g.random.IntN(12) {
	case 0:
		return fmt.Sprintf("0x%x", n)
	case 1:
		return fmt.Sprintf("0%c%o", "oO"[g.random.IntN(2)], n)
	case 2:
		return fmt.Sprintf("0%c%b", "bB"[g.random.IntN(2)], n>>32)
	case 3:
		return fmt.Sprintf("%d_%03d", n%1000, n%997)
	case 4:
		return g.oneOf([]string{"0", "00", "0_0", "0x_1f", "1_0_0", "0X1F", "9223372036854775807", "9223372036854775808", "123456789012345678901234567890"})
	case 5:
		return strconv.FormatUint(n, 10)
	default:
		return strconv.FormatUint(n%100, 10)
	}
}

func (g *generator) floatLiteral() string {
	if g.random.IntN(3) == 0 {
		return g.oneOf([]string{
			"0.0", "1e16", "1e15", "1.0e-5", "0.0001", "0.00001", "123456789.123456789", "1e22", "1E3", "2.5", "0.5", "1.5", "3.5",
			"1_0.5", "1.5_0e1_0", "1e308", "5e-324", "0.1", "2.675", "1e100", "9007199254740993.0", "1e-7", "12345678901234567.0",
		})
	}
	return fmt.Sprintf("%d.%d", g.random.IntN(1000), g.random.IntN(1000))
}

// percentFormat returns a format string of the % operator, together with its arguments.
func (g *generator) percentFormat() string {
	named := g.random.IntN(5) == 0
	var format strings.Builder
	var args []string
	for range 1 + g.random.IntN(3) {
		format.WriteString(escape(g.oneOf(formatTexts)))
		key := ""
		if named {
			key = "(" + g.oneOf([]string{"a", "b", "c"}) + ")"
		}
		spec, arg := g.percentSpec(key)
		format.WriteString(spec)
		args = append(args, arg)
	}
	literal := "'" + format.String() + "'"
	switch {
	case named:
		return literal + " % {'a': $prim, 'b': $iprim, 'c': $nprim}"
	case g.random.IntN(4) == 0:
		return literal + "|format(" + strings.Join(args, ", ") + ")"
	case len(args) == 1 && g.random.IntN(2) == 0:
		return literal + " % " + args[0]
	default:
		return literal + " % (" + strings.Join(args, ", ") + ",)"
	}
}

func (g *generator) percentSpec(key string) (spec, arg string) {
	flags := g.oneOf([]string{"", "", "-", "0", "+", " ", "#", "-+", "0+", "# "})
	width := g.oneOf([]string{"", "", "", "1", "5", "12", "20"})
	precision := g.oneOf([]string{"", "", "", ".0", ".2", ".", ".7", ".15"})
	conversion := g.oneOf([]string{"s", "s", "d", "i", "u", "x", "X", "o", "f", "F", "e", "E", "g", "G", "r", "a", "c", "%"})
	if g.wild && g.random.IntN(15) == 0 {
		conversion = g.oneOf([]string{"y", "ld", "", "h", "Ls", "*d"})
	}
	spec = "%" + key + flags + width + precision + conversion
	switch {
	case g.wild && g.random.IntN(6) == 0:
		return spec, "$prim"
	case conversion == "%":
		return "%%", "$sprim"
	case conversion == "c":
		return spec, g.oneOf([]string{"65", "'x'", "8364", "$iprim"})
	case strings.ContainsAny(conversion, "sra"):
		return spec, "$prim"
	case strings.ContainsAny(conversion, "xXo"):
		return spec, "$iprim"
	default:
		return spec, "$nprim"
	}
}

// formatCall returns a string with replacement fields, and a call of its method format.
func (g *generator) formatCall() string {
	var format strings.Builder
	automatic := g.random.IntN(2) == 0
	for range 1 + g.random.IntN(3) {
		format.WriteString(strings.NewReplacer("{", "{{", "}", "}}", "$", "$$").Replace(g.oneOf(formatTexts)))
		field := ""
		if !automatic {
			field = g.oneOf([]string{"0", "1", "2", "k", "k[0]", "q[a]", "q[b][c]", "0.real"})
		}
		conversion := g.oneOf([]string{"", "", "", "", "!r", "!s", "!a"})
		spec := g.oneOf([]string{"", ":$SPEC", ":$SPEC"})
		if conversion != "" && spec != "" {
			spec = ":" + g.oneOf([]string{"10", "<8", ">8", "^8", "*^9", ".2", "_<7.3"})
		}
		format.WriteString("{" + field + conversion + spec + "}")
	}
	if g.wild && g.random.IntN(8) == 0 {
		format.WriteString(g.oneOf([]string{"{", "}", "{0", "{!x}", "{:{}}", "{:{}{}}", "{a.b}", "{0.__class__}", "{k[z]}", "{9}", "{0[}"}))
	}
	literal := "'" + format.String() + "'"
	return literal + g.oneOf([]string{
		".format($nprim, $iprim, $nprim, k=$slist, q={'a': 1, 'b': {'c': 'x'}})",
		".format($iprim, $iprim, $iprim, k='xyz', q=o)",
		".format($sprim, $prim, $iprim, k=nums, q=d)",
		".format(*[$iprim, $sprim, $nprim], **{'k': 'k', 'q': d})",
	})
}

func (g *generator) formatSpec() string {
	align := g.oneOf([]string{"", "", "", "<", ">", "^", "=", "*<", "*^", "é>", "0=", "_^"})
	if g.random.IntN(3) != 0 {
		align = strings.TrimSuffix(align, "=")
	}
	sign := g.oneOf([]string{"", "", "", "+", "-", " "})
	alternate := g.oneOf([]string{"", "", "", "", "#"})
	zero := g.oneOf([]string{"", "", "", "0"})
	width := g.oneOf([]string{"", "", "3", "8", "14"})
	grouping := g.oneOf([]string{"", "", "", ",", "_"})
	precision := g.oneOf([]string{"", "", "", ".0", ".1", ".3", ".10"})
	conversion := g.oneOf([]string{"", "", "d", "f", "e", "g", "x", "X", "o", "b", "n", "%", "s", "c", "F", "E", "G"})
	if g.wild && g.random.IntN(20) == 0 {
		conversion = g.oneOf([]string{"y", "dd", "!", ".", "z"})
	}
	return align + sign + alternate + zero + width + grouping + precision + conversion
}

func (g *generator) block() string {
	g.blocks++
	return "b" + strconv.Itoa(g.blocks)
}
