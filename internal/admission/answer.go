package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/albertofaria/pav/internal/observability"
)

// judgeWithin limits the check of a pod: the API server waits ten seconds.
const judgeWithin = 8 * time.Second

// RefusalError is why a pod is rejected; other errors mean that it could not be checked.
type RefusalError struct{ err error }

func (r *RefusalError) Error() string { return r.err.Error() }
func (r *RefusalError) Unwrap() error { return r.err }

func refusePod(format string, args ...any) error { return &RefusalError{fmt.Errorf(format, args...)} }

// answer returns the response to an agent's request to create a pod, from the result of judge, which also gets the
// pod's spec as the API server sends it.
func answer(ctx context.Context, request admission.Request, judge func(ctx context.Context, pod *corev1.Pod, spec map[string]any) error) admission.Response {
	if request.Operation != admissionv1.Create {
		return admission.Allowed("")
	}
	object, err := decode(request.Object.Raw)
	pod := &corev1.Pod{}
	if err == nil {
		err = json.Unmarshal(request.Object.Raw, pod)
	}
	if err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decoding the pod: %w", err))
	}
	spec, _, _ := unstructured.NestedMap(object, "spec")
	pod.Namespace = request.Namespace
	ctx, cancel := context.WithTimeout(ctx, judgeWithin)
	defer cancel()
	err = judge(ctx, pod, spec)
	log := ctrl.LoggerFrom(ctx).WithValues("pod", pod.Namespace+"/"+pod.Name, "user", request.UserInfo.Username)
	var refused *RefusalError
	switch {
	case err == nil:
		log.Info("admitted an agent's pod")
		return admission.Allowed("")
	case errors.As(err, &refused):
		log.Info("refused an agent's pod", observability.Reason, err.Error())
		return admission.Denied(err.Error())
	}
	log.Error(err, "an agent's pod cannot be judged")
	response := admission.Errored(http.StatusServiceUnavailable, fmt.Errorf("the pod cannot be judged at present: %w", err))
	response.Result.Reason = metav1.StatusReasonServiceUnavailable
	return response
}

// get returns an object as the API server has it, typed and as templates see it, or nil if there is none.
func get[T any](ctx context.Context, c client.Reader, version, kind string, key client.ObjectKey) (*T, map[string]any, error) {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(version)
	found.SetKind(kind)
	err := c.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("getting %s %q: %w", kind, key, err)
	}
	found.SetManagedFields(nil)
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, typed); err != nil {
		return nil, nil, fmt.Errorf("reading %s %q: %w", kind, key, err)
	}
	return typed, found.Object, nil
}
