package jinja

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/jinja/py"
)

// templateCase is a template and its result in Jinja.
type templateCase struct {
	name     string
	template string
	want     string
	// fails is the kind of the error, if the template gives an error.
	fails string
}

var kindNames = map[py.Kind]string{
	py.Other: "other", py.Syntax: "syntax", py.UndefinedUse: "undefined", py.Type: "type", py.Security: "security",
	py.Limit: "limit",
}

// checkTemplates renders templates with templateData and compares the results.
func checkTemplates(t *testing.T, cases []templateCase) {
	t.Helper()
	env := New(Options{Limits: py.Limits{
		Steps: 10_000_000, Memory: 64 << 20, Text: 16 << 20, Depth: 100, Digits: 4300, Time: time.Minute,
	}})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, fails := renderCase(t, env, c.template)
			if diff := cmp.Diff(templateCase{want: c.want, fails: c.fails}, templateCase{want: got, fails: fails},
				cmp.AllowUnexported(templateCase{})); diff != "" {
				t.Errorf("%s (-Jinja +this):\n%s", c.template, diff)
			}
		})
	}
}

func renderCase(t *testing.T, env *Environment, source string) (text, fails string) {
	t.Helper()
	variables := map[string]py.Value{}
	for name, data := range templateData {
		value, err := py.FromData(data)
		if err != nil {
			t.Fatalf("converting %s: %v", name, err)
		}
		variables[name] = value
	}
	template, err := env.Compile(source)
	var result *Result
	if err == nil {
		result, err = template.Render(t.Context(), variables)
	}
	if err == nil {
		return result.Text, ""
	}
	wrong, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("%s: %v", source, err)
	}
	return "", kindNames[wrong.Kind]
}

// templateData has the variables of the templates.
var templateData = map[string]any{
	"users": []any{
		py.Object{{Key: "name", Value: "Ann"}, {Key: "age", Value: 30}, {Key: "city", Value: py.Object{{Key: "name", Value: "oslo"}}}},
		py.Object{{Key: "name", Value: "bob"}, {Key: "age", Value: 25}, {Key: "city", Value: py.Object{{Key: "name", Value: "Bonn"}}}},
		py.Object{{Key: "name", Value: "Cid"}, {Key: "age", Value: 30}, {Key: "city", Value: py.Object{{Key: "name", Value: "Oslo"}}}},
	},
}
