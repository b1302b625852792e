package template

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func noPVC(context.Context, string, string) (map[string]any, error) {
	return nil, ErrNoClaim
}

func TestEvaluate(t *testing.T) {
	vars := Variables{
		"params":   map[string]any{"server": "nfs.example.com", "path": "it's"},
		"capacity": int64(1073741824),
		"readOnly": true,
		"modes":    []any{"ReadWriteOnce"},
	}
	getPVC := func(_ context.Context, name, namespace string) (map[string]any, error) {
		return map[string]any{"metadata": map[string]any{"name": name, "namespace": namespace}}, nil
	}
	tests := map[string]struct {
		in, want any
	}{
		"a string without a template is itself":          {in: "plain { text }", want: "plain { text }"},
		"numbers and booleans are themselves":            {in: []any{int64(1), 1.5, false, nil}, want: []any{int64(1), 1.5, false, nil}},
		"strings at any depth are evaluated":             {in: map[string]any{"a": []any{map[string]any{"b": "{{ params.server }}"}}}, want: map[string]any{"a": []any{map[string]any{"b": "nfs.example.com"}}}},
		"keys are not evaluated":                         {in: map[string]any{"{{ x }}": "y"}, want: map[string]any{"{{ x }}": "y"}},
		"integers print as such":                         {in: "{{ capacity }}", want: "1073741824"},
		"tobash makes one word":                          {in: "mount {{ params.path | tobash }}", want: `mount 'it'\''s'`},
		"a line of one statement disappears":             {in: "a\n  {% if readOnly %}\nb\n  {% endif %}\nc", want: "a\nb\nc"},
		"a template that sets yaml becomes its value":    {in: "{% set yaml = true %}\nstorage: {{ capacity }}\nmodes: {{ modes | tojson }}", want: map[string]any{"storage": int64(1073741824), "modes": []any{"ReadWriteOnce"}}},
		"values that yaml yields are not evaluated":      {in: "{% set yaml = true %}\na: '{{ \"{{ x }}\" }}'", want: map[string]any{"a": "{{ x }}"}},
		"get_pvc looks a claim up":                       {in: "{{ get_pvc('data', 'apps').metadata.namespace }}", want: "apps"},
		"a literal delimiter is written with a template": {in: "{{ '{{' }}", want: "{{"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Evaluate(t.Context(), "spec.x", test.in, vars, getPVC)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestEvaluate_Errors(t *testing.T) {
	deep := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"args": []any{"ok", "{{ nope.nope }}"}}}}}
	tests := map[string]struct {
		in         any
		field      string
		text       string
		notInError string
	}{
		"the field of an undefined variable is named": {in: deep, field: "spec.x.spec.containers[0].args[1]"},
		"syntax errors do not echo the source":        {in: "secret-text {{ 1 + }}", field: "spec.x", notInError: "secret-text"},
		"include is refused":                          {in: "{% include '/etc/passwd' %}", field: "spec.x", notInError: "root:"},
		"an unknown filter is refused":                {in: "{{ 'a' | nosuchfilter }}", field: "spec.x", text: "nosuchfilter"},
		"a claim that does not exist is named":        {in: "{{ get_pvc('data', 'apps') }}", field: "spec.x", text: "data"},
		"text that is no YAML is refused":             {in: "{% set yaml = true %}\na: [", field: "spec.x", text: "YAML"},
		"a source that is too long is refused":        {in: "{{ 1 }}" + strings.Repeat("x", maxSource), field: "spec.x", text: "longer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Evaluate(t.Context(), "spec.x", test.in, Variables{}, noPVC)
			var templateError *Error
			if !errors.As(err, &templateError) {
				t.Fatalf("got %v and error %v, want a *template.Error", got, err)
			}
			if templateError.Field != test.field {
				t.Errorf("field is %q, want %q", templateError.Field, test.field)
			}
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %q does not contain %q", err, test.text)
			}
			if test.notInError != "" && strings.Contains(err.Error(), test.notInError) {
				t.Errorf("error %q contains %q", err, test.notInError)
			}
		})
	}
}

// That the API server did not answer is no mistake of the author's.
func TestEvaluate_ClaimThatCannotBeLookedUp(t *testing.T) {
	unavailable := errors.New("unavailable")
	_, err := Evaluate(t.Context(), "spec.x", "{{ get_pvc('data', 'apps') }}", Variables{}, func(context.Context, string, string) (map[string]any, error) {
		return nil, unavailable
	})
	var templateError *Error
	if !errors.Is(err, unavailable) || errors.As(err, &templateError) {
		t.Errorf("got %v, want the error of the look-up, and no *Error", err)
	}
}

func TestQuoteForBash_RoundTripsThroughBash(t *testing.T) {
	for _, text := range []string{"", "a b", "it's", "$(touch /x) `id` \\", "line 1\nline 2", "\n'\\\n", "tab\t\r\x01é🚀", "-n", "!x"} {
		word, err := quoteForBash(text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(word, "\n") {
			t.Errorf("%q holds a newline", word)
		}
		out, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+word).Output()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(out)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", word, diff)
		}
	}
	if _, err := quoteForBash("a\x00b"); err == nil {
		t.Error("a NUL character was quoted")
	}
}

func TestParseCapacity(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "10Gi": 10 << 30, "1e3": 1000, "1.5Ki": 1536, "9223372036854775807": 9223372036854775807} {
		if got, err := ParseCapacity(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", "1.5", "100m", "NaN", "1e30", "9223372036854775808"} {
		if got, err := ParseCapacity(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

func decodeObject(t *testing.T, text string) map[string]any {
	t.Helper()
	value, err := Decode(apiextensionsv1.JSON{Raw: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return value.(map[string]any)
}

func TestVariables(t *testing.T) {
	claim := decodeObject(t, `{"metadata":{"name":"c","uid":"1-2"},"spec":{"accessModes":["ReadWriteOnce"],"volumeMode":"Filesystem","resources":{"requests":{"storage":"1Gi"}}}}`)
	class := decodeObject(t, `{"provisioner":"p","parameters":{"a":"b"}}`)
	volume := decodeObject(t, `{"spec":{"capacity":{"storage":"2Gi"},"csi":{"driver":"p","volumeHandle":"h"}}}`)

	creation, err := CreationVariables(claim, class)
	if err != nil {
		t.Fatal(err)
	}
	want := Variables{
		"requestedVolumeMode": "Filesystem", "requestedAccessModes": []any{"ReadWriteOnce"},
		"requestedMinCapacity": int64(1 << 30), "requestedMaxCapacity": nil,
		"params": map[string]any{"a": "b"}, "sc": class, "pvc": claim, "defaultHandle": "pvc-1-2",
	}
	if diff := cmp.Diff(want, creation); diff != "" {
		t.Errorf("creation: -want +got:\n%s", diff)
	}

	node := map[string]any{"metadata": map[string]any{"name": "n"}}
	staging, err := StagingVariables(volume, claim, node, true)
	if err != nil {
		t.Fatal(err)
	}
	want = Variables{
		"volumeMode": "Filesystem", "accessModes": []any{"ReadWriteOnce"}, "capacity": int64(2 << 30), "params": map[string]any{},
		"handle": "h", "readOnly": true, "pvc": claim, "pv": volume, "node": node,
	}
	if diff := cmp.Diff(want, staging); diff != "" {
		t.Errorf("staging: -want +got:\n%s", diff)
	}

	if _, err := StagingVariables(map[string]any{}, claim, node, false); err == nil {
		t.Error("a volume without a capacity was accepted")
	}
}
