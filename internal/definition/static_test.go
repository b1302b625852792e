package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

func TestPods_AreThoseWithoutATemplate(t *testing.T) {
	plain := containers(map[string]any{"name": "a", "image": "b:1", "command": []any{"true"}})
	templated := containers(map[string]any{"name": "a", "image": "b:1", "command": []any{"{{ 1 }}"}})
	object := with(plain, map[string]any{
		"volumeValidation": map[string]any{"podTemplate": templated},
		"volumeCreation":   map[string]any{"podTemplate": plain, "capacity": "{{ requestedMinCapacity }}"},
		"volumeDeletion":   map[string]any{"podTemplate": "{% set yaml = true %}"},
		"volumeUnstaging":  map[string]any{},
	})
	want := []StaticPod{
		{Field: "spec.volumeCreation.podTemplate", Workflow: pavv1.WorkflowCreation, Template: plain},
		{Field: "spec.volumeStaging.podTemplate", Workflow: pavv1.WorkflowStaging, Template: plain},
	}
	if diff := cmp.Diff(want, Pods(object)); diff != "" {
		t.Errorf("the pods (-want +got):\n%s", diff)
	}
}

func TestPods_AreAsEvaluated(t *testing.T) {
	pod := containers(map[string]any{"name": "a\n", "image": "b:1\r\n", "args": []any{"a\r\nb\n\n", int64(1), nil}})
	want := containers(map[string]any{"name": "a", "image": "b:1", "args": []any{"a\nb\n", int64(1), nil}})
	if diff := cmp.Diff(want, Pods(with(pod, nil))[0].Template); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
	if name := pod["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["name"]; name != "a\n" {
		t.Errorf("the object's own is changed to %q", name)
	}
}

func TestCheck_OneLineBreakAtTheEndDoesNotCount(t *testing.T) {
	checker := NewChecker(template.DefaultLimits())
	for text, errors := range map[string]int{"one\n": 0, "one\r\n": 0, "one\n\n": 1, "\n": 1} {
		object := with(containers(map[string]any{"name": "a", "image": "b:1"}), map[string]any{
			"provisioningModes": []any{"Dynamic"},
			"volumeCreation":    map[string]any{"capacity": "1Gi\n", "handle": text},
		})
		findings := checker.Check(object)
		if got, _ := counts(findings); got != errors {
			t.Errorf("the handle %q: got %v", text, findings)
		}
	}
}

func TestFindingsAreInTheOrderOfFields(t *testing.T) {
	got := order([]Finding{
		{Field: "a[10]"}, {Field: "a[9].b", Line: 2}, {Field: "a[9].b", Line: 1}, {Field: "a"}, {Field: "a[9].b", Line: 2},
	})
	want := []Finding{{Field: "a"}, {Field: "a[9].b", Line: 1}, {Field: "a[9].b", Line: 2}, {Field: "a[10]"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}
