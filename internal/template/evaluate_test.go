package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// definition returns value as a field of a PavProvisioner.
func definition(t *testing.T, value any) apiextensionsv1.JSON {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return apiextensionsv1.JSON{Raw: raw}
}

func noPVC(context.Context, string, string) (map[string]any, error) {
	return nil, ErrNoClaim
}

// evaluate evaluates value as field spec.x, within the default limits of agents.
func evaluate(t *testing.T, value any, vars Variables, getPVC GetPVC) (any, error) {
	t.Helper()
	return NewEvaluator(DefaultLimits()).Evaluate(t.Context(), Field{Path: "spec.x"}, definition(t, value), vars, getPVC)
}

func TestEvaluate(t *testing.T) {
	vars := Variables{
		"params":   map[string]any{"server": "nfs.example.com", "path": "it's"},
		"capacity": int64(1073741824),
		"readOnly": true,
		"modes":    []any{"ReadWriteOnce", "ReadOnlyMany"},
		"limit":    nil,
		"yaml":     true,
	}
	getPVC := func(_ context.Context, name, namespace string) (map[string]any, error) {
		return map[string]any{"metadata": map[string]any{"name": name, "namespace": namespace}}, nil
	}
	tests := map[string]struct {
		in, want any
	}{
		"a string without a template is itself":          {in: "plain { text }", want: "plain { text }"},
		"but for one line break at its end":              {in: "a\n\n", want: "a\n"},
		"numbers and booleans are themselves":            {in: []any{int64(1), 1.5, false, nil}, want: []any{int64(1), 1.5, false, nil}},
		"strings at any depth are evaluated":             {in: map[string]any{"a": []any{map[string]any{"b": "{{ params.server }}"}}}, want: map[string]any{"a": []any{map[string]any{"b": "nfs.example.com"}}}},
		"keys are not evaluated":                         {in: map[string]any{"{{ x }}": "y"}, want: map[string]any{"{{ x }}": "y"}},
		"integers print as such":                         {in: "{{ capacity }}", want: "1073741824"},
		"booleans are numbers, as in Python":             {in: "{{ readOnly }}", want: "True"},
		"tobash makes one word":                          {in: "mount {{ params.path | tobash }}", want: `mount 'it'"'"'s'`},
		"tojson is on one line":                          {in: "{{ {'a': 'x\ny'} | tojson }}", want: `{"a": "x\ny"}`},
		"none may be tested":                             {in: "{{ 'any' if limit is none else limit }}", want: "any"},
		"what is undefined may be replaced":              {in: "{{ nope | default('x') }}", want: "x"},
		"what exists sometimes may be tested for":        {in: "{{ 'a' if selectedNode is defined else 'b' }}", want: "b"},
		"a line of one statement disappears":             {in: "a\n  {% if readOnly %}\nb\n  {% endif %}\nc", want: "a\nb\nc"},
		"a literal delimiter is written with a template": {in: "{{ '{{' }}", want: "{{"},
		"get_pvc looks a claim up":                       {in: "{{ get_pvc('data', 'apps').metadata.namespace }}", want: "apps"},
		"its arguments have names":                       {in: "{{ get_pvc(namespace='apps', name='data').metadata.name }}", want: "data"},
		"each string sees the context as it was":         {in: []any{"{{ modes.pop() }}", "{{ modes.pop() }}"}, want: []any{"ReadOnlyMany", "ReadOnlyMany"}},
		"what a string sets, no other one sees":          {in: []any{"{% set x = 1 %}", "{{ x is defined }}"}, want: []any{"", "False"}},

		"a template that sets yaml becomes its value": {in: "{% set yaml = true %}\nstorage: {{ capacity }}\nmodes: {{ modes | tojson }}", want: map[string]any{"storage": int64(1073741824), "modes": []any{"ReadWriteOnce", "ReadOnlyMany"}}},
		"a variable of that name does not":            {in: "1", want: "1"},
		"nor one that is set to false":                {in: "{% set yaml = false %}1", want: "1"},
		"nor one that is set inside a loop":           {in: "{% for i in [1] %}{% set yaml = true %}{% endfor %}1", want: "1"},
		"values that yaml yields are not evaluated":   {in: "{% set yaml = true %}\na: '{{ \"{{ x }}\" }}'", want: map[string]any{"a": "{{ x }}"}},
		"anchors and merge keys":                      {in: "{% set yaml = true %}\na: &x {p: 1}\nb: {<<: *x, q: 2}", want: map[string]any{"a": map[string]any{"p": int64(1)}, "b": map[string]any{"p": int64(1), "q": int64(2)}}},
		"dates are text, as they were sent":           {in: "{% set yaml = true %}[2001-12-14, 2001-12-14 21:59:43Z]", want: []any{"2001-12-14", "2001-12-14T21:59:43+00:00"}},
		"keys are strings":                            {in: "{% set yaml = true %}{1: a, true: b, ~: c}", want: map[string]any{"1": "b", "null": "c"}},
		"no text is null":                             {in: "{% set yaml = true %}", want: nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t, test.in, vars, getPVC)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]any{"ReadWriteOnce", "ReadOnlyMany"}, vars["modes"]); diff != "" {
		t.Errorf("the caller's data has changed: %s", diff)
	}
}

func TestEvaluate_Errors(t *testing.T) {
	deep := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"args": []any{"ok", "\n {{ nope.nope }}"}}}}}
	bomb := "{% set yaml = true %}\na0: &a0 [x, x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%[1]d: &a%[1]d [*a%[2]d, *a%[2]d]\n", i+1, i)
	}
	tests := map[string]struct {
		in   any
		text string // that the error must contain
	}{
		"the field of an undefined variable is named": {in: deep, text: "spec.x.spec.containers[0].args[1]: line 2, column"},
		"a key with a dot is in brackets":             {in: map[string]any{"a.b/c": "{{ nope }}"}, text: "spec.x[a.b/c]: "},
		"syntax errors do not echo the source":        {in: "s3cr3t {{ 1 + }}", text: "spec.x: line 1, column"},
		"nor do errors at run time":                   {in: "{{ 's3cr3t' + 1 }}", text: "spec.x: line 1, column"},
		"nor do errors of conversion":                 {in: "{{ 's3cr3t'.encode('nope') }}", text: "spec.x: line 1, column"},
		"printing undefined is refused":               {in: "{{ nope }}", text: "'nope' is undefined"},
		"a variable that exists sometimes":            {in: "{{ selectedNode.metadata.name }}", text: "'selectedNode' is undefined: it exists only if the scheduler has selected a node"},
		"printing none is refused":                    {in: "{{ limit }}", text: "|default('…', true)"},
		"printing a list is refused":                  {in: "{{ [1] }}", text: "|join(',') or |tojson"},
		"printing a mapping is refused":               {in: "{{ {} }}", text: "|tojson"},
		"include is refused":                          {in: "{% include '/etc/passwd' %}", text: "line 1, column"},
		"an unknown filter is refused":                {in: "{{ 'a' | tojso }}", text: "tojson"},
		"an unknown filter where it is not met":       {in: "{% if false %}{{ 'a' | nosuch }}{% endif %}{{ 1 + }}", text: "line 1"},
		"get_pvc names the claim that does not exist": {in: "{{ get_pvc('data', 'apps') }}", text: `get_pvc(): "data" in namespace "apps": there is no such claim`},
		"but not at any length":                       {in: "{{ get_pvc('s3cr3t' * 100, 'apps') }}", text: "too long"},
		"get_pvc takes two arguments":                 {in: "{{ get_pvc('data') }}", text: "namespace"},
		"which are strings":                           {in: "{{ get_pvc('data', 1) }}", text: "a string as namespace, not a value of type int"},
		"and defined":                                 {in: "{{ get_pvc(nope, 'apps') }}", text: "'nope' is undefined"},
		"yaml that is no boolean":                     {in: "{% set yaml = 'true' %}", text: "the variable yaml must be true or false, not of type str"},
		"text that is no YAML":                        {in: "{% set yaml = true %}\na: [s3cr3t", text: "line 1, column 11"},
		"a YAML bomb":                                 {in: bomb, text: "too many values, as aliases and merges repeat them"},
		"an infinite number":                          {in: "{% set yaml = true %}[.inf]", text: "infinite"},
		"an integer that is too large":                {in: "{% set yaml = true %}{a: 99999999999999999999}", text: "64 bits"},
		"binary data":                                 {in: "{% set yaml = true %}!!binary aGVsbG8=", text: "!!binary"},
		"a set":                                       {in: "{% set yaml = true %}!!set {a}", text: "!!set"},
		"a source that is too long":                   {in: "{{ 1 }}" + strings.Repeat("x", DefaultLimits().Source), text: "longer than"},
		"a text that is too long":                     {in: "{{ 'x' * 1048577 }}", text: "longer than 1048576 bytes"},
		"texts that are too long together":            {in: []any{"{{ 'x' * 600000 }}", "{{ 'x' * 600000 }}"}, text: "spec.x[1]: the field's templates yield more than 1048576 bytes"},
		"too many steps":                              {in: "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", text: "spec.x: line 1, column"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := evaluate(t, test.in, Variables{"limit": nil}, noPVC)
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Fatalf("got %v and error %v, want a *template.Error", got, err)
			}
			if text := err.Error(); !strings.Contains(text, test.text) || !strings.HasPrefix(text, "spec.x") {
				t.Errorf("error %q does not contain %q", text, test.text)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("error %q has text of the template", err)
			}
		})
	}
}

func TestEvaluate_ReportsAllMistakesAtOnce(t *testing.T) {
	_, err := evaluate(t, map[string]any{"b": []any{"{{ 1 + }}", "{{ nope }}"}, "a": "{% if %}"}, nil, noPVC)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "spec.x.a: ") || !strings.HasPrefix(lines[1], "spec.x.b[0]: ") {
		t.Errorf("got %q, want the mistakes of a and b[0], but not of b[1], which is found when it is evaluated", lines)
	}

	many := make([]any, 100)
	for i := range many {
		many[i] = "{{"
	}
	_, err = evaluate(t, many, nil, noPVC)
	if err == nil || !strings.HasSuffix(err.Error(), "\nand 90 more mistakes") {
		t.Errorf("got %v, want ten mistakes and the number of the others", err)
	}
}

// An evaluation does not find a mistake that it does not reach, but Analyze does.
func TestEvaluate_PassesOverWhatItDoesNotMeet(t *testing.T) {
	in := "{% if false %}{{ 'x' | tobahs }}{% endif %}"
	if _, err := evaluate(t, in, nil, noPVC); err != nil {
		t.Errorf("evaluating it: %v", err)
	}
	want := []string{"line 1, column 24: there is no filter 'tobahs'; did you mean 'tobash'?"}
	if diff := cmp.Diff(want, texts(NewEvaluator(DefaultLimits()).Analyze("volumeStaging", in).Errors)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// If the API server does not answer, that is not a mistake of the author.
func TestEvaluate_ClaimThatCannotBeLookedUp(t *testing.T) {
	unavailable := errors.New("unavailable")
	_, err := evaluate(t, "{{ get_pvc('data', 'apps') }}", nil, func(context.Context, string, string) (map[string]any, error) {
		return nil, unavailable
	})
	var wrong *Error
	if !errors.Is(err, unavailable) || errors.As(err, &wrong) {
		t.Errorf("got %v, want the error of the look-up, and no *Error", err)
	}
}

// If the agent stops, that is not a mistake of the author either.
func TestEvaluate_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, in := range []string{"text", "{% for i in range(99999) %}{% for j in range(999) %}{% endfor %}{% endfor %}"} {
		_, err := NewEvaluator(DefaultLimits()).Evaluate(ctx, Field{Path: "spec.x"}, definition(t, in), nil, noPVC)
		var wrong *Error
		if !errors.Is(err, context.Canceled) || errors.As(err, &wrong) {
			t.Errorf("got %v, want that the context was cancelled, and no *Error", err)
		}
	}
}

func TestEvaluate_LooksEachClaimUpOnce_AndNotTooMany(t *testing.T) {
	calls := 0
	get := func(_ context.Context, name, _ string) (map[string]any, error) {
		calls++
		return map[string]any{"name": name}, nil
	}
	got, err := evaluate(t, []any{"{{ get_pvc('a', 'b').name }}", "{% for i in range(50) %}{{ get_pvc('a', 'b').name }}{% endfor %}"}, nil, get)
	if diff := cmp.Diff([]any{"a", strings.Repeat("a", 50)}, got); diff != "" || err != nil || calls != 1 {
		t.Errorf("%d calls, error %v, -want +got:\n%s", calls, err, diff)
	}
	calls = 0
	_, err = evaluate(t, "{% for i in range(1000) %}{{ get_pvc('a' ~ i, 'b').name }}{% endfor %}", nil, get)
	var wrong *Error
	if !errors.As(err, &wrong) || calls != maxLookUps {
		t.Errorf("%d calls and error %v, want %d and an *Error", calls, err, maxLookUps)
	}
}
