package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/test/jinja/cases"
)

// exceptions are the cases that fail intentionally, with the reasons.
var exceptions = map[string]string{
	"tobash-045": "Python quotes a NUL character, which Bash drops without a word: tobash is always safe, and so refuses it",
}

// All cases of the corpus pass, and all cases that fuzzing and reviews have found.
func TestCorpus(t *testing.T) {
	for name, least := range map[string]int{"corpus": 1861, "found": 54} {
		t.Run(name, func(t *testing.T) {
			if judged := judge(t, "testdata/"+name+".jsonl"); judged < least {
				t.Errorf("there are only %d cases", judged)
			}
		})
	}
}

// Evaluation is deterministic. The controller agent relies on this: it evaluates the same definition and objects as a
// node agent, and admits the node agent's pods only if they match its own result. Random and lipsum, the order of keys,
// and the messages of errors must be deterministic as well.
func TestCorpus_IsEvaluatedAlikeEachTime(t *testing.T) {
	evaluated := 0
	for _, name := range []string{"corpus", "found"} {
		content, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for c, err := range cases.NewReader(bytes.NewReader(content)).All() {
			if err != nil {
				t.Fatal(err)
			}
			first := cases.Evaluate(t.Context(), c.Template, c.Context)
			for range 3 {
				if diff := cmp.Diff(first, cases.Evaluate(t.Context(), c.Template, c.Context)); diff != "" {
					t.Errorf("%s: %q (-first +again):\n%s", c.ID, c.Template, diff)
				}
			}
			evaluated++
		}
	}
	if evaluated < 1915 {
		t.Errorf("there are only %d cases", evaluated)
	}
	const random = "{{ range(100000)|random }} {{ lipsum(n=1) }}"
	first := cases.Evaluate(t.Context(), random, py.Object{})
	if diff := cmp.Diff(first, cases.Evaluate(t.Context(), random, py.Object{})); diff != "" || first.Text == "" {
		t.Errorf("random: %s (-first +again):\n%s", first, diff)
	}
}

// judge reports a test error for each case of a file that fails, and returns the number of cases.
func judge(t *testing.T, path string) int {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for c, err := range cases.NewReader(bytes.NewReader(content)).All() {
		if err != nil {
			t.Fatal(err)
		}
		judged++
		got := cases.Evaluate(t.Context(), c.Template, c.Context)
		if reason, meant := exceptions[c.ID]; meant {
			if c.Passes(got) {
				t.Errorf("%s passes, although it is meant not to: %s", c.ID, reason)
			}
			continue
		}
		if !c.Passes(got) {
			t.Errorf("%s: %q\n  got  %s\n  want %s", c.ID, c.Template, got, c.Expected[0])
		}
	}
	return judged
}

func TestRun(t *testing.T) {
	in := strings.Join([]string{
		`{"contexts": {"c": {"x": 1, "d": {"b": 1, "a": 2}}}}`,
		`{"id": "1", "cat": "a", "template": "{{ x }}", "ctx": "c", "expect": {"ok": "1", "yaml": false}}`,
		`{"id": "2", "cat": "a", "template": "{{ d|join }}", "ctx": "c", "expect": {"ok": "ab", "yaml": false}, "expect_sync": {"ok": "ba", "yaml": false}}`,
		``,
		`{"id": "3", "cat": "b", "template": "{{ 'u2028: \u2028' }}", "ctx": {}, "expect": {"ok": "wrong", "yaml": false}}`,
		`{"id": "4", "cat": "b", "template": "{{ 1 + }}", "ctx": {}, "expect": {"error": "syntax", "stage": "compile", "exc": "x"}}`,
		`{"id": "5", "cat": "b", "template": "{{ 1 / 0 }}", "ctx": {}, "expect": {"error": "other", "stage": "compile"}}`,
		`{"id": "6", "cat": "b", "template": "{% set yaml = true %}{a: 1, b: .nan, c: 2021-01-01}", "ctx": {}, "expect": {"ok": "{a: 1, b: .nan, c: 2021-01-01}", "yaml": true, "value": {"c": {"__repr__": "datetime.date(2021, 1, 1)"}, "a": 1, "b": NaN}}}`,
		`{"id": "7", "cat": "c", "template": "{{ big }}", "ctx": {"big": 123456789012345678901234567890}}`,
	}, "\n")
	var out bytes.Buffer
	total, err := run(t.Context(), strings.NewReader(in), &out)
	if err != nil {
		t.Fatal(err)
	}
	type passed struct {
		ID   string
		Pass *bool
	}
	yes, no := true, false
	want := []passed{{"1", &yes}, {"2", &yes}, {"3", &no}, {"4", &yes}, {"5", &no}, {"6", &yes}, {"7", nil}}
	var got []passed
	for line := range strings.Lines(out.String()) {
		var p passed
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, out.String())
	}
	if diff := cmp.Diff(count{passed: 2, failed: 2, wrongStage: 1}, *total["b"], cmp.AllowUnexported(count{})); diff != "" {
		t.Errorf("category b: -want +got:\n%s", diff)
	}
	if !strings.Contains(out.String(), `{"id":"7","got":{"ok":"123456789012345678901234567890","yaml":false},"pass":null}`) {
		t.Errorf("the last case is not there in its form:\n%s", out.String())
	}
}

func TestRun_NotUnderstood(t *testing.T) {
	tests := map[string]string{
		"a line that is no JSON":              `{"id": `,
		"a context that is not there":         `{"id": "1", "template": "x", "ctx": "c"}`,
		"a line with neither":                 `{"id": "1"}`,
		"an expectation that expects nothing": `{"id": "1", "template": "x", "ctx": {}, "expect": {}}`,
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t.Context(), strings.NewReader(in), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "line 1") {
				t.Errorf("got error %v, want one that names the line", err)
			}
		})
	}
}
