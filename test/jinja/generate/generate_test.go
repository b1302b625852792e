package generate

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
)

func TestNew_SameSeedSameCase(t *testing.T) {
	for number := range uint64(200) {
		first, second := New(1, number), New(1, number)
		if first.Template != second.Template || string(first.Context) != string(second.Context) {
			t.Fatalf("case %d is not the same twice:\n%q\n%q", number, first.Template, second.Template)
		}
	}
	if New(1, 1).Template == New(2, 1).Template && New(1, 2).Template == New(2, 2).Template {
		t.Error("another seed gives the same cases")
	}
}

func TestNew_ContextsAreJSON(t *testing.T) {
	for number := range uint64(2000) {
		if c := New(7, number); !json.Valid(c.Context) {
			t.Fatalf("case %d has no JSON: %s", number, c.Context)
		}
	}
}

// Every rule can be reached from the rule "template" or from a terminal.
func TestLanguage_EveryRuleIsReached(t *testing.T) {
	reached := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		r := language[name]
		if r == nil || reached[name] {
			return
		}
		reached[name] = true
		for _, a := range r.alternatives {
			for _, p := range a.parts {
				reach(p.name)
			}
		}
	}
	reach("template")
	for _, name := range []string{"prim", "iprim", "nprim", "sprim"} {
		reach(name) // used by terminals
	}
	for name := range language {
		if !reached[name] {
			t.Errorf("rule %q is of no use", name)
		}
	}
}

func TestReadGrammar_Mistakes(t *testing.T) {
	tests := map[string]string{
		"a rule that is missing": "a:\n  $b\n",
		"a rule that never ends": "a:\n  x$a\n",
		"a rule that is doubled": "a:\n  x\na:\n  y\n",
		"an alternative alone":   "  x\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := readGrammar(fstest.MapFS{"x.grammar": {Data: []byte(text)}}); err == nil {
				t.Error("got no error")
			}
		})
	}
}

func TestTokens_LoseNothing(t *testing.T) {
	for number := range uint64(500) {
		text := New(3, number).Template
		if joined := strings.Join(Tokens(text), ""); joined != text {
			t.Fatalf("tokens of %q are %q together", text, joined)
		}
	}
}
