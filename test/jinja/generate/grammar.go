package generate

import (
	"embed"
	"fmt"
	"io/fs"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// A grammar file consists of rules "name:", each with indented alternatives below it. An alternative may begin with its
// weight ("3| …") and with "!", which marks alternatives that are mostly mistakes and appear only in wild templates. In
// an alternative, $name is a rule, $NAME is a terminal that is implemented in Go, $$ is a dollar sign, and \n is a
// newline.
//
//go:embed *.grammar
var grammarFiles embed.FS

type grammar map[string]*rule

type rule struct {
	alternatives []alternative
	// depth is the depth of the shallowest expansion of this rule.
	depth int
}

type alternative struct {
	parts  []part
	weight int
	wild   bool
	depth  int
}

// part is a literal, or the name of a rule or of a terminal.
type part struct {
	literal string
	name    string
}

// language is the grammar in the embedded files. The tests of this package check that the files are valid.
var language = mustReadGrammar(grammarFiles)

func mustReadGrammar(files fs.FS) grammar {
	g, err := readGrammar(files)
	if err != nil {
		panic(err)
	}
	return g
}

func readGrammar(files fs.FS) (grammar, error) {
	paths, err := fs.Glob(files, "*.grammar")
	if err != nil {
		return nil, err
	}
	g := grammar{}
	for _, path := range paths {
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, err
		}
		if err := g.read(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return g, g.measure()
}

func (g grammar) read(text string) error {
	var current *rule
	for number, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "  "):
			name := strings.TrimSuffix(line, ":")
			if g[name] != nil {
				return fmt.Errorf("line %d: rule %q is there twice", number+1, name)
			}
			current = &rule{}
			g[name] = current
		case current == nil:
			return fmt.Errorf("line %d: an alternative without a rule", number+1)
		default:
			current.alternatives = append(current.alternatives, parseAlternative(line[2:]))
		}
	}
	return nil
}

var (
	weightPrefix = regexp.MustCompile(`^(\d+)\| ?`)
	namePattern  = regexp.MustCompile(`\$(\$|[a-z_]+|[A-Z_]+)`)
)

func parseAlternative(text string) alternative {
	a := alternative{weight: 1}
	if match := weightPrefix.FindStringSubmatch(text); match != nil {
		a.weight, _ = strconv.Atoi(match[1])
		text = text[len(match[0]):]
	}
	text, a.wild = strings.CutPrefix(text, "!")
	a.parts = parsePattern(strings.ReplaceAll(text, `\n`, "\n"))
	return a
}

func parsePattern(text string) []part {
	var parts []part
	for {
		at := namePattern.FindStringIndex(text)
		if at == nil {
			return append(parts, part{literal: text})
		}
		name := text[at[0]+1 : at[1]]
		if name == "$" {
			parts = append(parts, part{literal: text[:at[0]] + "$"})
		} else {
			parts = append(parts, part{literal: text[:at[0]]}, part{name: name})
		}
		text = text[at[1]:]
	}
}

// measure computes the depths of the rules. It returns an error if a rule is missing or never ends.
func (g grammar) measure() error {
	for _, r := range g {
		r.depth = math.MaxInt32
	}
	for changed := true; changed; {
		changed = false
		for _, r := range g {
			for i := range r.alternatives {
				a := &r.alternatives[i]
				a.depth = g.depthOf(a.parts)
				if !a.wild && a.depth+1 < r.depth {
					r.depth, changed = a.depth+1, true
				}
			}
		}
	}
	for name, r := range g {
		if r.depth == math.MaxInt32 {
			return fmt.Errorf("rule %q never ends", name)
		}
		for _, a := range r.alternatives {
			if a.depth == math.MaxInt32 {
				return fmt.Errorf("rule %q has an alternative with a rule that is not there: %v", name, a.parts)
			}
		}
	}
	return nil
}

func (g grammar) depthOf(parts []part) int {
	depth := 0
	for _, p := range parts {
		switch r := g[p.name]; {
		case p.name == "" || terminals[p.name] != nil:
		case r == nil:
			return math.MaxInt32
		default:
			depth = max(depth, r.depth)
		}
	}
	return depth
}
