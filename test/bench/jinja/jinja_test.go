// Package jinja measures PaV's template engine with a pod template of 60 lines and a dozen expressions: as one
// template, and as separate templates for its strings. Package gonja measures the same.
package jinja

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/jinja"
	"github.com/albertofaria/pav/jinja/py"
)

var environment = template.NewEnvironment(template.DefaultLimits())

func read(tb testing.TB, name string) string {
	tb.Helper()
	raw, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

// templates returns all strings of the pod that are templates.
func templates(tb testing.TB) []string {
	tb.Helper()
	var pod any
	if err := yaml.Unmarshal([]byte(read(tb, "pod.yaml")), &pod); err != nil {
		tb.Fatal(err)
	}
	var found []string
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case string:
			if strings.Contains(v, "{{") || strings.Contains(v, "{%") {
				found = append(found, v)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(pod)
	return found
}

func variables(tb testing.TB) py.Object {
	tb.Helper()
	data, err := py.DecodeJSON([]byte(read(tb, "context.json")))
	if err != nil {
		tb.Fatal(err)
	}
	return data.(py.Object)
}

func compile(tb testing.TB, text string) *jinja.Template {
	tb.Helper()
	compiled, err := environment.Compile(text)
	if err != nil {
		tb.Fatal(err)
	}
	return compiled
}

// render renders a template as PaV does: each call converts the context.
func render(tb testing.TB, compiled *jinja.Template, context py.Object) string {
	tb.Helper()
	values := make(map[string]py.Value, len(context))
	for _, member := range context {
		value, err := py.FromData(member.Value)
		if err != nil {
			tb.Fatal(err)
		}
		values[member.Key] = value
	}
	text, _, err := template.Render(tb.Context(), compiled, values)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func TestRender(t *testing.T) {
	if got := render(t, compile(t, read(t, "pod.yaml")), variables(t)); got != read(t, "pod.txt") {
		t.Errorf("the text is not that of real Jinja:\n%s", got)
	}
}

func BenchmarkTemplate_Compile(b *testing.B) {
	text := read(b, "pod.yaml")
	b.ReportAllocs()
	for b.Loop() {
		compile(b, text)
	}
}

func BenchmarkTemplate_Render(b *testing.B) {
	compiled, context := compile(b, read(b, "pod.yaml")), variables(b)
	b.ReportAllocs()
	for b.Loop() {
		render(b, compiled, context)
	}
}

func BenchmarkTemplate_CompileAndRender(b *testing.B) {
	text, context := read(b, "pod.yaml"), variables(b)
	b.ReportAllocs()
	for b.Loop() {
		render(b, compile(b, text), context)
	}
}

func BenchmarkStrings_CompileAndRender(b *testing.B) {
	texts, context := templates(b), variables(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, text := range texts {
			render(b, compile(b, text), context)
		}
	}
}
