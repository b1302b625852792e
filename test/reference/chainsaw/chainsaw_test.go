package chainsaw

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEvaluate_KnowsReferencesOnly(t *testing.T) {
	r := &Runner{Namespace: "here", Values: []byte("driver: {name: a, parameters: {b: c}}\nprotocols: [S3]")}
	if err := r.bind([]binding{{"name", "($values.driver.name)"}, {"again", "($name)"}}); err != nil {
		t.Fatal(err)
	}
	got, err := r.evaluate(map[string]any{"a": []any{"($again)", "($namespace)", "no (expression)", 1.0}, "b": "($values.driver.parameters)", "c": "($values.protocols)"})
	want := map[string]any{"a": []any{"a", "here", "no (expression)", 1.0}, "b": map[string]any{"b": "c"}, "c": []any{"S3"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, unknown := range []any{"($absent)", "($values.absent)", "(length($namespace))", "(@.status)", map[string]any{"(status)": "x"}} {
		if got, err := r.evaluate([]any{unknown}); err == nil {
			t.Errorf("%v is evaluated to %v", unknown, got)
		}
	}
}

func TestMissing_TellsTheFirstDifference(t *testing.T) {
	got := map[string]any{"status": map[string]any{"ready": true, "count": int64(1), "items": []any{map[string]any{"a": "b", "c": "d"}}}}
	for text, test := range map[string]struct {
		want    any
		problem string
	}{
		"other fields do not matter":         {map[string]any{"status": map[string]any{"ready": true}}, ""},
		"a number is equal to an integer":    {map[string]any{"status": map[string]any{"count": 1.0}}, ""},
		"fields in lists, too":               {map[string]any{"status": map[string]any{"items": []any{map[string]any{"a": "b"}}}}, ""},
		"a field has another value":          {map[string]any{"status": map[string]any{"count": 2.0}}, ".status.count is 1, want 2"},
		"a field is absent":                  {map[string]any{"status": map[string]any{"bound": true}}, ".status.bound is null, want true"},
		"a mapping is absent":                {map[string]any{"spec": map[string]any{"a": "b"}}, ".spec.a is null, want \"b\""},
		"a list has another number of items": {map[string]any{"status": map[string]any{"items": []any{}}}, ".status.items has 1 items, want 0"},
	} {
		if got := missing("", test.want, got); got != test.problem {
			t.Errorf("%s: %q, want %q", text, got, test.problem)
		}
	}
}

func TestOperate_KnowsThreeOperations(t *testing.T) {
	r := &Runner{}
	one := &resource{Resource: map[string]any{"kind": "Bucket"}}
	for _, o := range []operation{{}, {Apply: one, Create: one}, {Apply: one, Assert: one}, {Create: one, Assert: one}} {
		if err := r.operate(t.Context(), o); err == nil || !strings.Contains(err.Error(), "one of apply, create and assert") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := r.operate(t.Context(), operation{Assert: one}); err == nil || !strings.Contains(err.Error(), "without a kind or a name") {
		t.Errorf("a resource without a name: %v", err)
	}
}
