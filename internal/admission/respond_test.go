package admission

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/albertofaria/pav/internal/definition"
)

func TestRespond(t *testing.T) {
	response := respond("demo", []definition.Finding{
		{Severity: definition.Error, Field: "spec.a", Line: 2, Column: 3, Message: "one"},
		{Severity: definition.Warning, Field: "spec.b", Message: "two"},
		{Severity: definition.Error, Field: "spec.c", Key: true, Message: "three"},
		{Severity: definition.Warning, Field: "spec.b", Message: "two"},
	})
	if response.Allowed || response.Result.Code != http.StatusUnprocessableEntity || response.Result.Reason != metav1.StatusReasonInvalid {
		t.Errorf("got %+v", response)
	}
	causes := []metav1.StatusCause{
		{Type: "FieldValueInvalid", Field: "spec.a", Message: "line 2, column 3: one"},
		{Type: "FieldValueForbidden", Field: "spec.c", Message: "three"},
	}
	if diff := cmp.Diff(causes, response.Result.Details.Causes); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
	if want := `PavProvisioner "demo" is invalid: spec.a: line 2, column 3: one; spec.c: three`; response.Result.Message != want {
		t.Errorf("got message %q, want %q", response.Result.Message, want)
	}
	if diff := cmp.Diff([]string{"spec.b: two"}, response.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestRespond_IsBounded(t *testing.T) {
	var findings []definition.Finding
	for i := range 100 {
		findings = append(findings, definition.Finding{Severity: definition.Warning, Field: "spec", Message: fmt.Sprint(i, strings.Repeat("x", 1000))})
	}
	response := respond("demo", findings)
	total := 0
	for _, warning := range response.Warnings {
		if len(warning) > maxWarning {
			t.Errorf("a warning has %d bytes", len(warning))
		}
		total += len(warning)
	}
	if n := len(response.Warnings); !response.Allowed || n != maxWarnings || total > 4096 {
		t.Errorf("allowed %t with %d warnings of %d bytes", response.Allowed, n, total)
	}
	if last := response.Warnings[maxWarnings-1]; !strings.HasPrefix(last, "there are 86 more warnings") {
		t.Errorf("the last warning is %q", last)
	}
}

func TestPasses(t *testing.T) {
	object := func(capacity, deleted string) map[string]any {
		metadata := map[string]any{"name": "demo", "finalizers": []any{capacity}}
		if deleted != "" {
			metadata["deletionTimestamp"] = deleted
		}
		return map[string]any{"metadata": metadata, "spec": map[string]any{"volumeCreation": map[string]any{"capacity": capacity}}}
	}
	const now = "2020-01-01T00:00:00Z"
	tests := map[string]struct {
		operation   admissionv1.Operation
		object, old map[string]any
		want        bool
	}{
		"a new definition is judged":             {operation: admissionv1.Create, object: object("1Gi", "")},
		"a changed one is":                       {operation: admissionv1.Update, object: object("1Gi", ""), old: object("2Gi", "")},
		"an unchanged one is not":                {operation: admissionv1.Update, object: object("1Gi", ""), old: object("1Gi", ""), want: true},
		"one under deletion is not":              {operation: admissionv1.Update, object: object("1Gi", now), old: object("2Gi", now), want: true},
		"one whose deletion begins now is not":   {operation: admissionv1.Update, object: object("1Gi", now), old: object("1Gi", ""), want: true},
		"deletion is not":                        {operation: admissionv1.Delete, old: object("1Gi", ""), want: true},
		"a subresource's connection is not, too": {operation: admissionv1.Connect, object: object("1Gi", ""), want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := passes(test.operation, test.object, test.old); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestFindingsOf_OnlyWhatValidationFindsIsAMistake(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	required := field.Required(field.NewPath("spec", "containers").Index(0).Child("image"), "")
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "stage-1", field.ErrorList{required})
	// A ValidatingAdmissionPolicy without a reason of its own denies a request with such a cause.
	policy := metav1.StatusCause{Message: "pods must name their team"}
	with := func(err *apierrors.StatusError, cause metav1.StatusCause) error {
		status := err.ErrStatus.DeepCopy()
		status.Details.Causes = append(status.Details.Causes, cause)
		return &apierrors.StatusError{ErrStatus: *status}
	}
	without := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "stage-1", nil)
	strange := metav1.StatusCause{Type: "Team", Field: "metadata.labels", Message: "no team"}
	tests := map[string]struct {
		err       error
		elsewhere bool
		severity  definition.Severity
		field     string
	}{
		"a good pod":                        {},
		"an invalid pod":                    {err: invalid, severity: definition.Error, field: "spec.p.spec.containers[0].image"},
		"one in another namespace":          {err: invalid, elsewhere: true, severity: definition.Warning, field: "spec.p.spec.containers[0].image"},
		"a policy":                          {err: with(without, policy), severity: definition.Warning, field: "spec.p"},
		"a policy's word among others":      {err: with(invalid, policy), severity: definition.Warning, field: "spec.p"},
		"a cause that validation has not":   {err: with(invalid, strange), severity: definition.Warning, field: "spec.p"},
		"an invalid pod without any causes": {err: without, severity: definition.Warning, field: "spec.p"},
		"a quota":                           {err: apierrors.NewForbidden(pods, "stage-1", fmt.Errorf("exceeded quota")), severity: definition.Warning, field: "spec.p"},
		"an API server's pain":              {err: apierrors.NewInternalError(fmt.Errorf("etcd")), severity: definition.Warning, field: "spec.p"},
		"no API server":                     {err: fmt.Errorf("connection refused"), severity: definition.Warning, field: "spec.p"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := findingsOf("spec.p", !test.elsewhere, test.err)
			if (len(found) == 0) != (test.severity == "") {
				t.Fatalf("got %v", found)
			}
			if len(found) > 0 && (found[0].Severity != test.severity || found[0].Field != test.field) {
				t.Errorf("got %s %s", found[0].Severity, found[0])
			}
		})
	}
}

func TestUnsaid(t *testing.T) {
	said := []definition.Finding{
		{Severity: definition.Error, Field: "spec.p.spec.containers[0].imag", Key: true},
		{Severity: definition.Error, Field: "spec.p.spec.volumes"},
		{Severity: definition.Warning, Field: "spec.p.spec.hostname"},
		{Severity: definition.Error, Field: "spec.p.metadata.labels[a/b]", Key: true},
	}
	for field, want := range map[string]bool{
		"spec.p.spec.containers[0].image":  false, // reported already: the key was misspelled
		"spec.p.spec.containers[1].image":  true,
		"spec.p.spec.volumes":              false,
		"spec.p.spec.volumes[0].name":      false,
		"spec.p.spec.volumesOfMine":        true,
		"spec.p.spec.hostname":             true,
		"spec.p.metadata.labels[c.d/e.f]":  false,
		"spec.p.spec.containers[0].env[0]": true,
	} {
		found := []definition.Finding{{Severity: definition.Error, Field: field, Message: "Required value"}}
		if got := len(unsaid(said, found)) > 0; got != want {
			t.Errorf("%s: new %t, want %t", field, got, want)
		}
	}
}
