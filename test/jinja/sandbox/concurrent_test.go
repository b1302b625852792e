package sandbox

import (
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/jinja"
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/test/jinja/cases"
)

// mutators is a template that tries to change its variables.
const mutators = "{% if nums is defined %}{{ nums.pop() }}{% endif %}{% if d is defined %}{% set d = dict(d, z=1) %}{{ d|length }}{% endif %}" +
	"{% if pods is defined %}{% set ns = namespace(pods[0]) %}{% set ns.name = 'changed' %}{{ ns.name }}{{ pods.clear() }}{% endif %}{{ s|default('') }}"

// A thousand concurrent renders use the same templates and the same data. Each render gives the same result as it does
// alone, and the data does not change. The race detector can find further errors in this test.
func TestRender_Concurrently(t *testing.T) {
	file, err := os.Open("../testdata/corpus.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	environment := template.NewEnvironment(template.DefaultLimits())
	type shared struct {
		name      string
		compiled  *jinja.Template
		variables any
		want      string
	}
	var templates []shared
	add := func(name, source string, variables any) {
		compiled, err := environment.Compile(source)
		if err != nil {
			return
		}
		templates = append(templates, shared{name, compiled, variables, render(t, compiled, variables)})
	}
	const every = 15
	for c, err := range cases.NewReader(file).All() {
		if err != nil {
			t.Fatal(err)
		}
		if len(templates)%every == 0 {
			add("mutators with the context of "+c.ID, mutators, c.Context)
		}
		add(c.ID, c.Template, c.Context)
	}
	before := encode(t, templates[0].variables)

	const renders = 1000
	var workers sync.WaitGroup
	for first := range renders {
		workers.Go(func() {
			for i := range 10 {
				s := templates[(first*10+i)%len(templates)]
				if got := render(t, s.compiled, s.variables); got != s.want {
					t.Errorf("%s yields %q, and %q alone", s.name, got, s.want)
				}
			}
		})
	}
	workers.Wait()
	if diff := cmp.Diff(before, encode(t, templates[0].variables)); diff != "" {
		t.Errorf("the data has changed: -want +got:\n%s", diff)
	}
}

// render returns the text of a template, or the message of its error.
func render(t *testing.T, compiled *jinja.Template, data any) string {
	t.Helper()
	variables, err := cases.Variables(data)
	if err != nil {
		t.Error(err)
		return ""
	}
	text, _, err := template.Render(t.Context(), compiled, variables)
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

func encode(t *testing.T, data any) string {
	t.Helper()
	raw, err := json.Marshal(data.(py.Object))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
