// Package gonja measures gonja, with the settings that PaV's templates need, with the same template as the benchmark of
// PaV's own engine in package jinja.
package gonja

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
	"gopkg.in/yaml.v3"
)

const templateName = "/template"

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

func newEnvironment(tb testing.TB) *exec.Environment {
	tb.Helper()
	var variables map[string]any
	if err := json.Unmarshal([]byte(read(tb, "context.json")), &variables); err != nil {
		tb.Fatal(err)
	}
	variables["capacity"] = int64(variables["capacity"].(float64))
	return &exec.Environment{
		Context:           exec.EmptyContext().Update(builtins.GlobalFunctions).Update(exec.NewContext(variables)),
		Filters:           builtins.Filters,
		Tests:             builtins.Tests,
		ControlStructures: builtins.ControlStructures,
		Methods:           builtins.Methods,
	}
}

func compile(tb testing.TB, environment *exec.Environment, text string) *exec.Template {
	tb.Helper()
	settings := config.New()
	settings.StrictUndefined = true
	settings.TrimBlocks = true
	settings.LeftStripBlocks = true
	loader, err := loaders.NewMemoryLoader(map[string]string{templateName: text})
	if err != nil {
		tb.Fatal(err)
	}
	template, err := exec.NewTemplate(templateName, settings, loader, environment)
	if err != nil {
		tb.Fatal(err)
	}
	return template
}

func render(tb testing.TB, environment *exec.Environment, template *exec.Template) string {
	tb.Helper()
	text, err := template.ExecuteToString(environment.Context)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func TestRender(t *testing.T) {
	environment := newEnvironment(t)
	if got := render(t, environment, compile(t, environment, read(t, "pod.yaml"))); got != read(t, "pod.txt") {
		t.Errorf("the text is not that of real Jinja:\n%s", got)
	}
}

func BenchmarkTemplate_Compile(b *testing.B) {
	environment, text := newEnvironment(b), read(b, "pod.yaml")
	b.ReportAllocs()
	for b.Loop() {
		compile(b, environment, text)
	}
}

func BenchmarkTemplate_Render(b *testing.B) {
	environment := newEnvironment(b)
	template := compile(b, environment, read(b, "pod.yaml"))
	b.ReportAllocs()
	for b.Loop() {
		render(b, environment, template)
	}
}

func BenchmarkTemplate_CompileAndRender(b *testing.B) {
	environment, text := newEnvironment(b), read(b, "pod.yaml")
	b.ReportAllocs()
	for b.Loop() {
		render(b, environment, compile(b, environment, text))
	}
}

func BenchmarkStrings_CompileAndRender(b *testing.B) {
	environment, texts := newEnvironment(b), templates(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, text := range texts {
			render(b, environment, compile(b, environment, text))
		}
	}
}
