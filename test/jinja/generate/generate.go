package generate

import (
	"math/rand/v2"
	"strings"
)

// Case is a template and its context, in JSON.
type Case struct {
	Template string
	Context  []byte
}

// New returns the case with a number. The case depends only on the seed and the number.
func New(seed, number uint64) Case {
	g := &generator{random: rand.New(rand.NewPCG(seed, number))}
	g.wild = g.random.IntN(3) == 0
	g.odd = g.random.IntN(4) == 0
	template := g.template()
	return Case{Template: template, Context: g.context()}
}

const (
	// maxExpansions is the number of expansions after which only the shallowest alternatives are chosen.
	maxExpansions = 90
	// Many templates are shallow, so that each operation is tested with variables and literals as its arguments.
	minDepth, maxDepth = 4, 9
)

type generator struct {
	random *rand.Rand
	out    strings.Builder
	// A wild template contains constructs that are mostly mistakes. An odd template has unusual spacing.
	wild, odd  bool
	expansions int
	// blocks is the number of blocks so far. It makes the names of blocks unique.
	blocks int
}

func (g *generator) template() string {
	g.expand("template", minDepth+g.random.IntN(maxDepth-minDepth+1))
	text := g.out.String()
	if g.random.IntN(12) == 0 {
		text = g.mutate(text)
	}
	switch g.random.IntN(30) {
	case 0:
		text = strings.ReplaceAll(text, "\n", "\r\n")
	case 1:
		text = strings.ReplaceAll(text, "\n", "\r")
	}
	return text
}

func (g *generator) expand(name string, depth int) {
	g.expansions++
	if terminal := terminals[name]; terminal != nil {
		g.emit(parsePattern(terminal(g)), depth)
		return
	}
	if g.expansions > maxExpansions {
		depth = 0
	}
	g.emit(g.choose(language[name], depth).parts, depth-1)
}

func (g *generator) emit(parts []part, depth int) {
	for _, p := range parts {
		if p.name != "" {
			g.expand(p.name, depth)
		} else {
			g.literal(p.literal)
		}
	}
}

// choose returns an alternative that is not deeper than depth. If there is none, it returns one of the shallowest
// alternatives.
func (g *generator) choose(r *rule, depth int) alternative {
	limit := max(depth, r.depth-1)
	total := 0
	for _, a := range r.alternatives {
		if a.depth <= limit && (g.wild || !a.wild) {
			total += a.weight
		}
	}
	pick := g.random.IntN(total)
	for _, a := range r.alternatives {
		if a.depth > limit || (a.wild && !g.wild) {
			continue
		}
		if pick -= a.weight; pick < 0 {
			return a
		}
	}
	panic("unreachable: the weights have been added up")
}

// literal writes a literal part of a rule. In odd templates, it changes the spacing.
func (g *generator) literal(text string) {
	if !g.odd {
		g.out.WriteString(text)
		return
	}
	for i := 0; i < len(text); i++ {
		pair := text[i:min(i+2, len(text))]
		switch {
		case pair == "{{":
			g.out.WriteString(pair + g.sign("-"))
			i++
		case pair == "{%" || pair == "{#":
			g.out.WriteString(pair + g.sign("-+"))
			i++
		case pair == "%}" || pair == "#}":
			g.out.WriteString(g.sign("-+") + pair)
			i++
		case pair == "}}" && !strings.HasPrefix(text[i+1:], "}}"):
			g.out.WriteString(g.sign("-") + pair)
			i++
		case text[i] == ' ' && g.random.IntN(40) == 0:
			g.out.WriteString(g.oneOf(spaces))
		default:
			g.out.WriteByte(text[i])
		}
	}
}

// sign sometimes returns one of the signs, and otherwise an empty string.
func (g *generator) sign(signs string) string {
	if g.random.IntN(10) != 0 {
		return ""
	}
	i := g.random.IntN(len(signs))
	return signs[i : i+1]
}

func (g *generator) oneOf(items []string) string { return items[g.random.IntN(len(items))] }
