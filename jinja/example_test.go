package jinja_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/albertofaria/pav/jinja"
	"github.com/albertofaria/pav/jinja/py"
)

var limits = py.Limits{Steps: 1_000_000, Memory: 1 << 24, Text: 1 << 20, Depth: 50, Digits: 4300, Time: time.Second}

// A template is compiled once and can be rendered any number of times.
func Example() {
	env := jinja.New(jinja.Options{Limits: limits, Source: 1 << 16})
	template, err := env.Compile("{% for name in names %}\n{{ loop.index }}. {{ name | capitalize }}\n{% endfor %}\n")
	if err != nil {
		panic(err)
	}
	names, err := py.FromData([]any{"ada", "grace"})
	if err != nil {
		panic(err)
	}
	result, err := template.Render(context.Background(), map[string]py.Value{"names": names})
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(result.Text)
	// Output:
	// 1. Ada
	// 2. Grace
}

// A host program can add its own filters. They use the same budget as the template.
func ExampleFilter() {
	shout := func(b *py.Budget, value py.Value, _ py.Args) (py.Value, error) {
		text, err := py.ToStr(b, value)
		return py.Str(strings.ToUpper(text) + "!"), err
	}
	env := jinja.New(jinja.Options{Limits: limits, Source: 1 << 16, Filters: map[string]jinja.Filter{"shout": shout}})
	template, err := env.Compile("{{ 'hello' | shout }}")
	if err != nil {
		panic(err)
	}
	result, err := template.Render(context.Background(), nil)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(result.Text)
	// Output: HELLO!
}

// Errors contain the line and the column. They never contain a value.
func ExampleError() {
	env := jinja.New(jinja.Options{Limits: limits, Source: 1 << 16})
	_, err := env.Compile("size: {{ 1 +* 2 }}")
	if mistake, ok := errors.AsType[*jinja.Error](err); ok {
		_, _ = os.Stdout.WriteString(mistake.Error())
	}
	// Output: line 1, column 13: expected an expression, got '*'
}

// The time and the memory of a template are limited.
func ExampleOptions() {
	env := jinja.New(jinja.Options{Limits: py.Limits{Steps: 1000, Memory: 1 << 20, Text: 1 << 10, Depth: 10, Digits: 100, Time: time.Second}, Source: 1 << 10})
	template, err := env.Compile("{% for i in range(100000) %}x{% endfor %}")
	if err != nil {
		panic(err)
	}
	_, err = template.Render(context.Background(), nil)
	_, _ = os.Stdout.WriteString(err.Error())
	// Output: line 1, column 1: it takes more than 1000 steps
}
