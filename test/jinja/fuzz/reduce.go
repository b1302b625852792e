package main

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/albertofaria/pav/test/jinja/cases"
	"github.com/albertofaria/pav/test/jinja/generate"
	"github.com/albertofaria/pav/test/jinja/oracle"
)

const (
	// askAtOnce is the number of candidates that are evaluated in one batch.
	askAtOnce = 64
	// reduceFor is the time limit for the reduction of one difference.
	reduceFor = 10 * time.Second
)

// engine is the engine that is compared with real Jinja2.
type engine func(question oracle.Question) cases.Outcome

// reduce returns a smaller template and context with the same kind of difference.
func reduce(ctx context.Context, jinja *oracle.Oracle, evaluate engine, d difference) difference {
	r := &reducer{jinja: jinja, evaluate: evaluate, best: d, until: time.Now().Add(reduceFor)}
	for r.improve(ctx, templates(r.best.question)) || r.improve(ctx, contexts(r.best.question)) {
		if time.Now().After(r.until) {
			break
		}
	}
	return r.best
}

type reducer struct {
	jinja    *oracle.Oracle
	evaluate engine
	best     difference
	until    time.Time
}

// improve replaces the best difference by the first candidate that has the same kind of difference. It reports whether
// it found one.
func (r *reducer) improve(ctx context.Context, candidates []oracle.Question) bool {
	for chunk := range slices.Chunk(candidates, askAtOnce) {
		if time.Now().After(r.until) {
			return false
		}
		answers, err := r.jinja.Ask(ctx, chunk)
		if err != nil {
			return false
		}
		for i, question := range chunk {
			d := difference{question, answers[i], r.evaluate(question)}
			if differs(question, d.want, d.got) && kind(d.want) == kind(r.best.want) && kind(d.got) == kind(r.best.got) {
				r.best = d
				return true
			}
		}
	}
	return false
}

// templates returns questions with simpler templates, the shortest template first.
func templates(question oracle.Question) []oracle.Question {
	tokens := generate.Tokens(question.Template)
	seen := map[string]bool{question.Template: true}
	var texts []string
	add := func(parts ...[]string) {
		text := strings.Join(slices.Concat(parts...), "")
		if !seen[text] && len(text) <= len(question.Template) {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	for size := len(tokens); size > 0; size /= 2 {
		for start := 0; start+size <= len(tokens); start += max(size/2, 1) {
			add(tokens[:start], tokens[start+size:])
		}
	}
	for _, pair := range pairs(tokens) {
		open, end := pair[0], pair[1]
		add(tokens[:open.from], tokens[end.to:])
		add(tokens[:open.from], tokens[open.to:end.from], tokens[end.to:])
		if outer, ok := printed(tokens, open.from); ok {
			add(tokens[:outer+1], []string{" "}, tokens[open.to:end.from], []string{" "}, tokens[closing(tokens, end.from):])
		}
	}
	for i, simpler := range simplifications(tokens) {
		if simpler != "" {
			add(tokens[:i], []string{simpler}, tokens[i+1:])
		}
	}
	slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	return withContext(texts, question.Context)
}

func withContext(texts []string, context json.RawMessage) []oracle.Question {
	questions := make([]oracle.Question, len(texts))
	for i, text := range texts {
		questions[i] = oracle.Question{Template: text, Context: context}
	}
	return questions
}

// span is the range of tokens of a bracket, or of a tag from its opening to its closing delimiter.
type span struct {
	from, to int
	opens    string
}

var (
	brackets = map[string]string{"(": ")", "[": "]", "{": "}"}
	tagName  = regexp.MustCompile(`^\w+$`)
)

// pairs returns the matching pairs of brackets, and the matching pairs of tags that open and close a block.
func pairs(tokens []string) [][2]span {
	var open []span
	var found [][2]span
	end := func(at span, ends func(span) bool) {
		for i, begun := range slices.Backward(open) {
			if ends(begun) {
				found = append(found, [2]span{begun, at})
				open = open[:i]
				return
			}
		}
	}
	for i, token := range tokens {
		switch {
		case brackets[token] != "":
			open = append(open, span{i, i + 1, token})
		case token == ")" || token == "]" || token == "}":
			end(span{i, i + 1, ""}, func(s span) bool { return brackets[s.opens] == token })
		case strings.HasPrefix(token, "{%"):
			tag := span{i, closing(tokens, i), name(tokens, i)}
			tag.to = min(tag.to+1, len(tokens))
			if ended, ok := strings.CutPrefix(tag.opens, "end"); ok {
				end(tag, func(s span) bool { return s.opens == ended })
			} else {
				open = append(open, tag)
			}
		}
	}
	return found
}

// name returns the name of the tag that begins at token i.
func name(tokens []string, i int) string {
	for _, token := range tokens[i+1:] {
		if tagName.MatchString(token) {
			return token
		}
		if strings.TrimSpace(token) != "" {
			break
		}
	}
	return ""
}

// printed returns the token that opens the print statement around token i. It returns false if token i is not in a
// print statement.
func printed(tokens []string, i int) (int, bool) {
	for ; i >= 0; i-- {
		switch {
		case strings.HasPrefix(tokens[i], "{{"):
			return i, true
		case strings.HasPrefix(tokens[i], "{%"):
			return 0, false
		}
	}
	return 0, false
}

// closing returns the token that closes the tag or print statement around token i.
func closing(tokens []string, i int) int {
	for ; i < len(tokens); i++ {
		if strings.HasSuffix(tokens[i], "}}") || strings.HasSuffix(tokens[i], "%}") {
			return i
		}
	}
	return len(tokens)
}

// simplifications returns a simpler literal for each token that is a literal, and an empty string for each other token.
func simplifications(tokens []string) []string {
	simpler := make([]string, len(tokens))
	for i, token := range tokens {
		switch {
		case len(token) > 3 && (token[0] == '\'' || token[0] == '"'):
			simpler[i] = "'a'"
		case len(token) > 1 && token[0] >= '0' && token[0] <= '9':
			simpler[i] = "1"
		}
	}
	return simpler
}

// contexts returns questions with smaller contexts. The first one omits all variables that the template does not name.
// Each other one omits one variable.
func contexts(question oracle.Question) []oracle.Question {
	var variables map[string]json.RawMessage
	if err := json.Unmarshal(question.Context, &variables); err != nil {
		return nil
	}
	unnamed := map[string]bool{}
	for name := range variables {
		if !strings.Contains(question.Template, name) {
			unnamed[name] = true
		}
	}
	var candidates []oracle.Question
	if len(unnamed) > 0 {
		candidates = append(candidates, without(question, variables, func(name string) bool { return unnamed[name] }))
	}
	for gone := range variables {
		candidates = append(candidates, without(question, variables, func(name string) bool { return name == gone }))
	}
	return candidates
}

func without(question oracle.Question, variables map[string]json.RawMessage, gone func(string) bool) oracle.Question {
	kept := map[string]json.RawMessage{}
	for name, value := range variables {
		if !gone(name) {
			kept[name] = value
		}
	}
	// The order of the variables is lost here, but no template can see it.
	context, err := json.Marshal(kept)
	if err != nil {
		context = question.Context
	}
	return oracle.Question{Template: question.Template, Context: context}
}
