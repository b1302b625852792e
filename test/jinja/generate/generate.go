package generate

import (
	"math/rand/v2"
	"strings"
)

// Case is a template and the context, in JSON, that it is to be evaluated in.
type Case struct {
	Template string
	Context  []byte
}

// New returns the case of a number below a seed.
func New(seed, number uint64) Case {
	g := &generator{random: rand.New(rand.NewPCG(seed, number))}
	g.wild = g.random.IntN(3) == 0
	g.odd = g.random.IntN(4) == 0
	template := g.template()
	return Case{Template: template, Context: g.context()}
}

const (
	// maxExpansions is when a template begins to come to an end.
	maxExpansions = 90
	// The shallow templates are many: each operation with arguments that are variables and literals.
	minDepth, maxDepth = 4, 9
)

type generator struct {
	random *rand.Rand
	out    strings.Builder
	// wild templates have what are most often mistakes, odd ones unusual spacing.
	wild, odd  bool
	expansions int
	// blocks is how many blocks there are, whose names must differ.
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

// choose returns an alternative that does not go deeper than depth, or one of the shallowest.
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

// literal writes what a rule has between its names; in odd templates with other spacing.
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

// sign returns one of signs, now and then.
func (g *generator) sign(signs string) string {
	if g.random.IntN(10) != 0 {
		return ""
	}
	i := g.random.IntN(len(signs))
	return signs[i : i+1]
}

func (g *generator) oneOf(items []string) string { return items[g.random.IntN(len(items))] }
