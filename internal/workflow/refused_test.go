package workflow

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestFailureWithoutPod(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(corev1.Resource("pods"), "create-1", errors.New(text))
	}
	created := func(err error) error { // as Create returns it
		return &RefusedError{Namespace: "team", Reason: whyRefused(err), Err: err}
	}
	for name, test := range map[string]struct {
		err       error
		want      pavv1.FailureReason
		namespace string
	}{
		"a template cannot be evaluated":      {err: errors.New("spec.volumeCreation.podTemplate: no such filter"), want: pavv1.FailureRefused},
		"a namespace is not open":             {err: &RefusedError{Namespace: "team", Reason: pavv1.FailureNamespaceNotOpen, Err: errors.New("not open")}, want: pavv1.FailureNamespaceNotOpen, namespace: "team"},
		"a quota has no room":                 {err: created(forbidden("exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0")), want: pavv1.FailureQuotaExceeded, namespace: "team"},
		"Pod Security forbids it":             {err: created(forbidden(`violates PodSecurity "restricted:latest": privileged`)), want: pavv1.FailurePodSecurity, namespace: "team"},
		"a service account does not exist":    {err: created(forbidden(`error looking up service account team/x`)), want: pavv1.FailurePodRefused, namespace: "team"},
		"the pod is invalid":                  {err: created(apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "exceeded quota", nil)), want: pavv1.FailurePodRefused, namespace: "team"},
		"a pod of another owner has the name": {err: fmt.Errorf("pod team/create-1: %w", ErrForeign), want: pavv1.FailurePodRefused},
		"the refusal is wrapped":              {err: fmt.Errorf("attempt 2: %w", created(forbidden("exceeded quota: q"))), want: pavv1.FailureQuotaExceeded, namespace: "team"},
	} {
		t.Run(name, func(t *testing.T) {
			got := FailureWithoutPod("create", test.err)
			if got.Reason != test.want || got.PodNamespace != test.namespace || got.PodName != "" || got.Message != test.err.Error() || got.Workflow != "create" {
				t.Errorf("got %+v, want reason %s and namespace %q", got, test.want, test.namespace)
			}
		})
	}
}

func TestRefusedError_IsErrRefusedAndItsCause(t *testing.T) {
	cause := errors.New("not open")
	err := error(&RefusedError{Namespace: "team", Reason: pavv1.FailureNamespaceNotOpen, Err: cause})
	if !errors.Is(err, ErrRefused) || !errors.Is(err, cause) || err.Error() != "the pod is refused: not open" {
		t.Errorf("got %v", err)
	}
}
