package workflow

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// RefusedError is an ErrRefused, with its reason.
type RefusedError struct {
	// Namespace is the namespace of the pod.
	Namespace string

	// Reason is NamespaceNotOpen, QuotaExceeded, PodSecurity or PodRefused.
	Reason pavv1.FailureReason

	// Err says what is wrong, and what to do about it.
	Err error
}

// Error implements error.
func (r *RefusedError) Error() string { return ErrRefused.Error() + ": " + r.Err.Error() }

// Unwrap returns ErrRefused and what is wrong.
func (r *RefusedError) Unwrap() []error { return []error{ErrRefused, r.Err} }

// whyRefused returns why the API server refused a pod. Its admission plugins for quotas and for Pod Security both
// answer Forbidden, and differ only in the text.
func whyRefused(err error) pavv1.FailureReason {
	switch text := err.Error(); {
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota"):
		return pavv1.FailureQuotaExceeded
	case apierrors.IsForbidden(err) && strings.Contains(text, "violates PodSecurity"):
		return pavv1.FailurePodSecurity
	default:
		return pavv1.FailurePodRefused
	}
}

// FailureWithoutPod returns the failure of a workflow for whose pod an error was returned instead of its creation. The
// caller sets the time of the failure.
func FailureWithoutPod(workflow string, err error) *pavv1.WorkflowFailure {
	failure := &pavv1.WorkflowFailure{Workflow: workflow, Reason: pavv1.FailureRefused, Message: err.Error()}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		failure.PodNamespace, failure.Reason = refused.Namespace, refused.Reason
	} else if errors.Is(err, ErrForeign) {
		failure.Reason = pavv1.FailurePodRefused
	}
	return failure
}
