package jinja

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/jinja/syntax"
)

var testLimits = py.Limits{Steps: 100_000, Memory: 8 << 20, Text: 1 << 16, Depth: 100, Digits: 4300, Time: time.Minute}

func variables(t *testing.T, data map[string]any) map[string]py.Value {
	t.Helper()
	values := map[string]py.Value{}
	for name, item := range data {
		value, err := py.FromData(item)
		if err != nil {
			t.Fatal(err)
		}
		values[name] = value
	}
	return values
}

func TestErrors_SayWhereAndWhat(t *testing.T) {
	tests := map[string]struct {
		source string
		want   string
	}{
		"a filter that does not exist":           {"a\n  {{ pvc | deflaut('x') }}", "line 2, column 12: there is no filter 'deflaut'; did you mean 'default'?"},
		"a test that does not exist":             {"{{ pvc is definde }}", "line 1, column 8: there is no test 'definde'; did you mean 'defined'?"},
		"a test that is used as a filter":        {"{{ 1 | odd }}", "line 1, column 8: there is no filter 'odd', but a test of that name"},
		"a function of Python's":                 {"{{ len('a') }}", "line 1, column 4: 'len' is undefined; there is a filter 'length'"},
		"a mapping unpacked":                     {"{% for k, v in pvc %}{% endfor %}", "line 1, column 4: too many values to unpack (expected 2); for keys and values of a mapping, use .items()"},
		"a variable that is nearly another":      {"{{ pcv.name }}", "line 1, column 4: 'pcv' is undefined; did you mean 'pvc'?"},
		"a variable like no other":               {"{{ something.name }}", "line 1, column 4: 'something' is undefined"},
		"an attribute of what is not there":      {"{{ pvc.spec.x }}", "line 1, column 7: 'dict object' has no attribute 'spec'"},
		"arithmetic with text":                   {"{{ 1 }}\n{{ pvc.name + 1 }}", "line 2, column 13: can only concatenate str (not \"int\") to str"},
		"a missing argument":                     {"{{ 'a' | replace('b') }}", "line 1, column 10: replace() missing 1 required positional argument: 'new'"},
		"too few values to unpack":               {"{% for a, b in [[1]] %}{% endfor %}", "line 1, column 4: not enough values to unpack (expected 2, got 1)"},
		"a block that is there twice":            {"{% block a %}{% endblock %}\n{% block a %}{% endblock %}", "line 2, column 4: the block 'a' is defined twice"},
		"other templates":                        {"{% include '/etc/passwd' %}", "line 1, column 4: 'include' is not available: a template stands alone and cannot use others"},
		"an attribute of what is no namespace":   {"{% set x = 1 %}{% set x.y = 2 %}", "line 1, column 19: cannot assign to attribute 'y': the variable is no namespace(); expected {% set x = namespace(…) %} before"},
		"the special variable loop":              {"{% for x in [1] %}{% set loop = 1 %}{% endfor %}", "line 1, column 26: cannot assign to the special variable 'loop' inside a for loop"},
		"a macro that is given too much":         {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "line 1, column 35: macro 'm' takes not more than 1 argument(s)"},
		"the place inside a macro, not its call": {"{% macro m() %}\n{{ 1 + 'a' }}{% endmacro %}{{ m() }}", "line 2, column 6: unsupported operand type(s) for +: 'int' and 'str'"},
		"too many steps":                         {"{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}", "line 1, column 30: it takes more than 100000 steps"},
		"too long a text":                        {"{{ 'a' * 1000000000 }}", "line 1, column 8: it makes a text longer than 65536 bytes"},
		"a macro that calls itself":              {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "line 1, column 20: it nests deeper than 100 levels"},
	}
	env := New(Options{Limits: testLimits})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template, err := env.Compile(test.source)
			if err == nil {
				_, err = template.Render(t.Context(), variables(t, map[string]any{"pvc": map[string]any{"name": "secret"}}))
			}
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("got %v, want an *Error", err)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Compile rejects a template, or a block, with too many variables in too many branches. The analysis of its variables
// would be incomplete, and names could be confused.
func TestCompile_RefusesTooManyNames(t *testing.T) {
	body := "{% set " + strings.Repeat("a,", 7000) + "b = [] %}" + "{% set b = 1 %}" +
		strings.Repeat("{% if n %}{% set b = 2 %}{% endif %}", 40000)
	names := make([]string, 3000)
	for i := range names {
		names[i] = fmt.Sprintf("{%% set a%d = 1 %%}", i)
	}
	many := strings.Join(names, "") + strings.Repeat("{% if n %}{% set b = 2 %}{% endif %}", 200)
	for name, source := range map[string]string{"at the top": many, "in a block": "{% block x %}" + many + "{% endblock %}", "in a loop": "{% for i in x %}" + many + "{% endfor %}", "few names in many branches": body} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Limits: testLimits}).Compile(source)
			if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Kind != py.Limit {
				t.Errorf("got %v, want an error of a limit", err)
			}
		})
	}
}

func TestSurvey_ReportsErrorsThatARenderMayNotReach(t *testing.T) {
	env, source := New(Options{Limits: testLimits}), "{% if x %}{{ 1 | nope }}{% endif %}\n{% if x %}{% include 'a' %}{% endif %}{{ 'ok' if not x else 1 is nope }}"
	template, err := env.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, problem := range env.Survey(source, Question{}).Problems {
		got = append(got, problem.Error())
	}
	want := []string{
		"line 1, column 18: there is no filter 'nope'",
		"line 2, column 14: 'include' is not available: a template stands alone and cannot use others",
		"line 2, column 63: there is no test 'nope'; did you mean 'none'?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := template.Render(t.Context(), variables(t, map[string]any{"x": true})); err == nil {
		t.Error("a render that meets a problem succeeds")
	}
	if result, err := template.Render(t.Context(), nil); err != nil || result.Text != "ok" {
		t.Errorf("a render that meets none: got %v, %v", result, err)
	}
}

func TestSurvey_ReportsNamesThatATemplateDoesNotSet(t *testing.T) {
	source := "{% set a = b %}{{ a }}{% for c in d %}{{ c }}{{ e }}{% endfor %}\n{% macro m(f) %}{{ f }}{{ g }}{{ range(h) }}{% endmacro %}"
	want := []Unknown{
		{Pos: syntax.Pos{Line: 1, Column: 12}, Name: "b", Harmless: true},
		{Pos: syntax.Pos{Line: 1, Column: 35}, Name: "d", Harmless: true},
		{Pos: syntax.Pos{Line: 1, Column: 49}, Name: "e"},
		{Pos: syntax.Pos{Line: 2, Column: 27}, Name: "g", Harmless: true},
	}
	got := New(Options{Limits: testLimits}).Survey(source, Question{Names: map[string]bool{"h": true}}).Unknown
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSurvey_ReportsWhereVariablesAreRead(t *testing.T) {
	at := func(column int, assigned bool) Read {
		return Read{Pos: syntax.Pos{Line: 1, Column: column}, Name: "v", Assigned: assigned}
	}
	for source, want := range map[string][]Read{
		"{{ v.a }}":   {at(4, false)},
		"{{ w.v }} v": nil,
		"{% for a in b %}{{ a if v }}{% endfor %}":     {at(25, false)},
		"{% macro m(a) %}{{ v }}{% endmacro %}":        {at(20, false)},
		"{% block a %}{{ v | d }}{% endblock %}":       {at(17, false)},
		"{% set v = v or 1 %}{{ v }}":                  {at(12, true), at(24, true)},
		"{% if a %}{% set v = 1 %}{% endif %}{{ v }}":  {at(40, true)},
		"{% set v = 1 %}{{ v }}":                       nil,
		"{% for v in b %}{{ v }}{% endfor %}":          nil,
		"{% macro m(v) %}{{ v }}{% endmacro %}":        nil,
		"{% with v = 1 %}{{ v }}{% endwith %}{# v #}":  nil,
		"{% raw %}{{ v }}{% endraw %}{{ 'v' }}{{ V }}": nil,
	} {
		got := New(Options{Limits: testLimits}).Survey(source, Question{Names: map[string]bool{"v": true}}).Reads
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}

func TestRender_EndsWithItsContext(t *testing.T) {
	template, err := New(Options{Limits: py.Limits{Steps: 1 << 40, Memory: 1 << 40, Text: 1 << 30, Depth: 100, Digits: 10, Time: time.Hour}}).
		Compile("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := template.Render(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestRender_EndsInTime(t *testing.T) {
	template, err := New(Options{Limits: py.Limits{Steps: 1 << 40, Memory: 1 << 40, Text: 1 << 30, Depth: 100, Digits: 10, Time: time.Millisecond}}).
		Compile("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	_, err = template.Render(t.Context(), nil)
	if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Kind != py.Limit {
		t.Errorf("got %v, want an error of a limit", err)
	}
}

// A template changes only its own copy of the data. The next render sees the original data.
func TestRender_ChangesNothingOfOthers(t *testing.T) {
	template, err := New(Options{Limits: testLimits}).Compile("{% set own = [1, 2] %}{{ own.pop() }}{{ own|length }}{{ list.pop() }}{{ list|length }}")
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{"list": []any{"a", "b"}}
	for range 3 {
		result, err := template.Render(t.Context(), variables(t, data))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("21b1", result.Text); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if diff := cmp.Diff(map[string]any{"list": []any{"a", "b"}}, data); diff != "" {
		t.Errorf("the data has changed: -want +got:\n%s", diff)
	}
}

func TestVariable_IsWhatTheTemplateSetsAtItsTop(t *testing.T) {
	template, err := New(Options{Limits: testLimits}).Compile("{% set a = 1 %}{% if true %}{% set b = 2 %}{% endif %}{% for x in [1] %}{% set c = 3 %}{% endfor %}{% set _d = 4 %}")
	if err != nil {
		t.Fatal(err)
	}
	result, err := template.Render(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "b": true, "c": false, "_d": false, "range": false} {
		if _, got := result.Variable(name); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
}
