package main

import (
	"bytes"
	"testing"

	"github.com/albertofaria/pav/test/jinja/cases"
	"github.com/albertofaria/pav/test/jinja/oracle"
)

// This test runs a few of the cases of 'make fuzz-jinja', the same ones each time.
func TestFuzz(t *testing.T) {
	if err := oracle.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := options{seed: 1, cases: 7000, oracles: 2, reductions: 20, logf: t.Logf}
	found, err := fuzz(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(found)
	if found.differences > 0 {
		t.Errorf("%d differences from real Jinja2; see them with: go run ./test/jinja/fuzz -seed %d -cases %d", found.differences, o.seed, o.cases)
	}
	const rendered = 60
	if got := percent(found.rendered, found.compared); got < rendered {
		t.Errorf("only %d%% of the templates render, want %d%% for them to be worth their while", got, rendered)
	}
}

// The fuzzer finds a difference and reduces it.
func TestReduce(t *testing.T) {
	if err := oracle.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	var jinja oracle.Oracle
	t.Cleanup(jinja.Close)
	question := oracle.Question{
		Template: "{% if true %}some text{% for a in nums %}{{ (1 + (2 * (get_pvc is defined)|string|length)) }}{% endfor %}{% endif %}",
		Context:  []byte(`{"nums": [1, 2], "s": "x", "get_pvc": 1}`),
	}
	// broken represents an engine that does not know one of the variables.
	broken := func(q oracle.Question) cases.Outcome {
		q.Context = bytes.ReplaceAll(q.Context, []byte("get_pvc"), []byte("nope"))
		answers, err := jinja.Ask(t.Context(), []oracle.Question{q})
		if err != nil {
			t.Fatal(err)
		}
		return answers[0]
	}
	want, err := jinja.Ask(t.Context(), []oracle.Question{question})
	if err != nil {
		t.Fatal(err)
	}
	small := reduce(t.Context(), &jinja, broken, difference{question, want[0], broken(question)})
	if got := small.question.Template; len(got) > len("{{(get_pvc is defined)}}") {
		t.Errorf("the smallest template is %q", got)
	}
	if got := string(small.question.Context); got != `{"get_pvc":1}` {
		t.Errorf("the smallest context is %s", got)
	}
}

func TestDiffers(t *testing.T) {
	ok := cases.Outcome{Text: "a"}
	tests := map[string]struct {
		want, got cases.Outcome
		differs   bool
	}{
		"the same text":                          {ok, ok, false},
		"another text":                           {ok, cases.Outcome{Text: "b"}, true},
		"an error instead of a text":             {ok, cases.Outcome{Class: cases.ClassType, Stage: cases.StageRender}, true},
		"an error of another class":              {cases.Outcome{Class: cases.ClassOther, Stage: cases.StageRender}, cases.Outcome{Class: cases.ClassType, Stage: cases.StageRender}, true},
		"an error at another stage":              {cases.Outcome{Class: cases.ClassType, Stage: cases.StageRender}, cases.Outcome{Class: cases.ClassType, Stage: cases.StageCompile}, true},
		"an error of which the message differs":  {cases.Outcome{Class: cases.ClassType, Stage: cases.StageRender, Message: "a"}, cases.Outcome{Class: cases.ClassType, Stage: cases.StageRender, Message: "b"}, false},
		"Python gave up":                         {cases.Outcome{Class: cases.ClassLimit}, ok, false},
		"the address of an object":               {cases.Outcome{Text: "<f at 0x7f00>"}, ok, false},
		"YAML instead of a text":                 {ok, cases.Outcome{Text: "a", YAML: true, Value: "a"}, true},
		"an integer instead of an equal float":   {cases.Outcome{YAML: true, Value: 1.0}, cases.Outcome{YAML: true, Value: int64(1)}, true},
		"the same mapping, in whichever of ways": {cases.Outcome{YAML: true, Value: map[string]any{"a": int64(1)}}, cases.Outcome{YAML: true, Value: map[string]any{"a": int64(1)}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := differs(oracle.Question{}, test.want, test.got); got != test.differs {
				t.Errorf("got %t, want %t", got, test.differs)
			}
		})
	}
}
