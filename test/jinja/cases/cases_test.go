package cases

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJudge(t *testing.T) {
	value := func(text string) Outcome {
		var o Outcome
		if err := json.Unmarshal([]byte(`{"ok": "x", "yaml": true, "value": `+text+`}`), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	failure := func(class, stage string) Outcome { return Outcome{Class: class, Stage: stage} }
	tests := map[string]struct {
		want, got Outcome
		verdict   Verdict
	}{
		"the same text":                     {Outcome{Text: "a"}, Outcome{Text: "a"}, Same},
		"another text":                      {Outcome{Text: "a"}, Outcome{Text: "a "}, Different},
		"no text instead of an error":       {failure(ClassType, StageRender), Outcome{}, Different},
		"an error instead of no text":       {Outcome{}, failure(ClassType, StageRender), Different},
		"another class":                     {failure(ClassType, StageRender), failure(ClassOther, StageRender), Different},
		"another stage":                     {failure(ClassType, StageRender), failure(ClassType, StageCompile), WrongStage},
		"another message":                   {Outcome{Class: ClassType, Message: "a"}, Outcome{Class: ClassType, Message: "b"}, Same},
		"YAML instead of a string":          {Outcome{Text: "x"}, value(`"x"`), Different},
		"a mapping in another order":        {value(`{"a": 1, "b": [2]}`), value(`{"b": [2], "a": 1}`), Same},
		"a list in another order":           {value(`[1, 2]`), value(`[2, 1]`), Different},
		"an integer and a float":            {value(`1`), value(`1.0`), Different},
		"two ways to write a float":         {value(`10000000000000000.0`), value(`1e16`), Same},
		"a float as the engine gives it":    {value(`0.1`), Outcome{Text: "x", YAML: true, Value: 0.1}, Same},
		"an integer as the engine gives it": {value(`7`), Outcome{Text: "x", YAML: true, Value: int64(7)}, Same},
		"integers of any size":              {value(`123456789012345678901`), value(`123456789012345678901`), Same},
		"integers that are close":           {value(`123456789012345678901`), value(`123456789012345678902`), Different},
		"true and one":                      {value(`true`), value(`1`), Different},
		"null and no value":                 {value(`null`), value(`false`), Different},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Judge(test.want, test.got); got != test.verdict {
				t.Errorf("got %d, want %d", got, test.verdict)
			}
		})
	}
}

func TestEvaluate(t *testing.T) {
	tests := map[string]struct{ template, context, want string }{
		"text":                      {"{{ x }}<", `{"x": "é"}`, `{"ok":"é<","yaml":false}`},
		"the order of a mapping":    {"{{ x|join }}", `{"x": {"b": 1, "a": 2}}`, `{"ok":"ba","yaml":false}`},
		"a large integer":           {"{{ x + 1 }}", `{"x": 99999999999999999999}`, `{"ok":"100000000000000000000","yaml":false}`},
		"no context":                {"{{ 1 }}", ``, `{"ok":"1","yaml":false}`},
		"a syntax error":            {"{{", `{}`, `{"error":"syntax","stage":"compile"}`},
		"an undefined variable":     {"{{ x }}", `{}`, `{"error":"undefined","stage":"render"}`},
		"an error of type":          {"{{ 1 + 'a' }}", `{}`, `{"error":"type","stage":"render"}`},
		"an error of security":      {"{{ [].append(1) }}", `{}`, `{"error":"security","stage":"render"}`},
		"any other error":           {"{{ 1 / 0 }}", `{}`, `{"error":"other","stage":"render"}`},
		"too much":                  {"{{ 'a' * 10 ** 9 }}", `{}`, `{"error":"other","stage":"render"}`},
		"a flag that is none":       {"{% set yaml = 1 %}", `{}`, `{"error":"type","stage":"render"}`},
		"a value":                   {"{% set yaml = true %}[1, 1.0, a]", `{}`, `{"ok":"[1, 1.0, a]","yaml":true,"value":[1,1.0,"a"]}`},
		"null":                      {"{% set yaml = true %}", `{}`, `{"ok":"","yaml":true,"value":null}`},
		"a date":                    {"{% set yaml = true %}2021-01-01", `{}`, `{"ok":"2021-01-01","yaml":true,"value":{"__repr__":"datetime.date(2021, 1, 1)"}}`},
		"a time":                    {"{% set yaml = true %}2021-01-01 1:02:03", `{}`, `{"ok":"2021-01-01 1:02:03","yaml":true,"value":{"__repr__":"datetime.datetime(2021, 1, 1, 1, 2, 3)"}}`},
		"a number that is not one":  {"{% set yaml = true %}.nan", `{}`, `{"ok":".nan","yaml":true,"value":{"__repr__":"nan"}}`},
		"bytes":                     {"{% set yaml = true %}!!binary aGk=", `{}`, `{"ok":"!!binary aGk=","yaml":true,"value":{"__repr__":"b'hi'"}}`},
		"a set":                     {"{% set yaml = true %}!!set {a}", `{}`, `{"ok":"!!set {a}","yaml":true,"value":{"__repr__":"{'a'}"}}`},
		"a set without members":     {"{% set yaml = true %}!!set {}", `{}`, `{"ok":"!!set {}","yaml":true,"value":{"__repr__":"set()"}}`},
		"text that is no YAML":      {"{% set yaml = true %}[", `{}`, `{"error":"other","stage":"yaml"}`},
		"a context of no variables": {"{{ x }}", `[]`, `{"error":"other","stage":"render"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			variables, err := DecodeContext([]byte(test.context))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(Evaluate(t.Context(), test.template, variables))
			if err != nil {
				t.Fatal(err)
			}
			// json.Marshal escapes some characters that the data contains unescaped.
			text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(got))
			if diff := cmp.Diff(test.want, text); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReader(t *testing.T) {
	lines := `{"contexts": {"c": {"x": NaN, "y": "NaN \"Infinity\""}}}` + "\r\n" +
		`{"id": "1", "cat": "a", "template": "a` + "\u2028" + `b", "ctx": "c", "expect": {"ok": "", "yaml": true, "value": [NaN, -Infinity, Infinity, "NaN"]}}` + "\n\n" +
		`{"template": "", "ctx": {}, "expect_303": {"error": "other"}}`
	reader := NewReader(strings.NewReader(lines))
	first, err := reader.Next()
	if err != nil {
		t.Fatal(err)
	}
	if first.ID != "1" || first.Category != "a" || first.Template != "a\u2028b" {
		t.Errorf("the first case is %+v", first)
	}
	special := func(text string) any { return map[string]any{"__repr__": text} }
	want := []Outcome{{YAML: true, Value: []any{special("nan"), special("-inf"), special("inf"), "NaN"}}}
	if diff := cmp.Diff(want, first.Expected); diff != "" {
		t.Errorf("expected: -want +got:\n%s", diff)
	}
	second, err := reader.Next()
	if err != nil || len(second.Expected) != 1 || second.Expected[0].Class != ClassOther {
		t.Errorf("the second case is %+v, %v", second, err)
	}
	if _, err := reader.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end there is %v", err)
	}
}
