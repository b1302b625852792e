package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// ErrRefused is wrapped by errors about pods that cannot be created until a namespace, a policy, a quota or the
// template is changed: each is a RefusedError.
var ErrRefused = errors.New("the pod is refused")

// ErrForeign is wrapped if another pod, which is not of this workflow, has its name.
var ErrForeign = errors.New("a pod of that name exists that PaV did not make")

// ErrUnjudged is wrapped if it is not known whether a pod may be created, as the webhook of the controller agents
// does not answer. The pod was not created.
var ErrUnjudged = errors.New("the pod waits for the controller agent to admit it")

// Runner creates, stops and releases workflow pods. Its client must read from the API server, not from a cache, as
// decisions about effects depend on it.
type Runner struct {
	// Client reads and writes the API server.
	Client client.Client

	// Node is the node whose agent runs the pods; empty for the controller agent. Agents of other nodes can create
	// pods with the same names and owners, but not with the label of this node.
	Node string
}

// Get returns a pod, or nil if there is none that belongs to the owner.
func (r *Runner) Get(ctx context.Context, ref *pavv1.PodReference, owner types.UID) (*corev1.Pod, error) {
	if ref == nil {
		return nil, nil
	}
	pod := &corev1.Pod{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting pod %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	if !Belongs(pod, owner) || r.Node != "" && pod.Annotations[pavv1.NodeAnnotation] != r.Node {
		return nil, nil
	}
	return pod, nil
}

// Belongs reports whether a pod belongs to the owner with the UID. If a PavStage is deleted with --cascade=orphan,
// the garbage collector removes the owner from its pods while the stage still needs them; then the pod's name shows
// the owner, as it is a hash of the UID. Tenants can set owners and names, but no labels of PaV.
func Belongs(pod *corev1.Pod, owner types.UID) bool {
	kind := pod.Labels[pavv1.WorkflowLabel]
	if kind == "" {
		return false
	}
	if controller := metav1.GetControllerOf(pod); controller != nil {
		return controller.UID == owner
	}
	return IsOrphan(pod) && pod.Name == Name(kind, string(owner), pod.Annotations[pavv1.AttemptAnnotation])
}

// IsOrphan reports whether a pod of a PavStage has no controller, so that it is not deleted with the PavStage.
func IsOrphan(pod *corev1.Pod) bool {
	return metav1.GetControllerOf(pod) == nil && pod.Labels[pavv1.StageLabel] != ""
}

// CheckNamespace returns an ErrRefused, which says what to do, if workflow pods may not run in the namespace: users
// who may edit it can reach everything that the pods reach, so an administrator must open namespaces other than
// PaV's.
func (r *Runner) CheckNamespace(ctx context.Context, name string) error {
	if name == DefaultNamespace {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); apierrors.IsNotFound(err) {
		return &RefusedError{Namespace: name, Reason: pavv1.FailurePodRefused, Err: fmt.Errorf("its namespace %q does not exist", name)}
	} else if err != nil {
		return fmt.Errorf("getting namespace %q: %w", name, err)
	}
	if namespace.Labels[pavv1.AllowPodsLabel] != "true" {
		return &RefusedError{Namespace: name, Reason: pavv1.FailureNamespaceNotOpen,
			Err: fmt.Errorf("its namespace %q is not open to workflow pods; to open it, run: kubectl label namespace %s %s=true", name, name, pavv1.AllowPodsLabel)}
	}
	return nil
}

// Create creates a pod, and fills in the object that the API server returned. If a pod of that name exists and is of
// the same workflow, it becomes the value of pod; for any other pod, the error is ErrForeign.
func (r *Runner) Create(ctx context.Context, pod *corev1.Pod) error {
	err := r.Client.Create(ctx, pod, client.FieldOwner(pavv1.Group))
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.adopt(ctx, pod)
	case isUnjudged(err):
		return fmt.Errorf("%w: creating pod %s/%s: %w", ErrUnjudged, pod.Namespace, pod.Name, err)
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err),
		apierrors.IsRequestEntityTooLargeError(err), isWebhookFailure(err):
		return &RefusedError{Namespace: pod.Namespace, Reason: whyRefused(err), Err: fmt.Errorf("creating pod %s/%s: %w", pod.Namespace, pod.Name, err)}
	default:
		return fmt.Errorf("creating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
}

// isWebhookFailure reports whether an admission webhook could not be called: an administrator must fix that, so it is
// reported, although for the API server it is an internal error.
func isWebhookFailure(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// isUnjudged reports whether PaV's own webhook could not be called, or could not answer, which is temporary.
func isUnjudged(err error) bool {
	if !apierrors.IsInternalError(err) && !apierrors.IsServiceUnavailable(err) {
		return false
	}
	return slices.ContainsFunc([]string{pavv1.PodsWebhook, pavv1.ControllerPodsWebhook}, func(name string) bool {
		return strings.Contains(err.Error(), `"`+name+`"`)
	})
}

func (r *Runner) adopt(ctx context.Context, want *corev1.Pod) error {
	found := &corev1.Pod{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(want), found); err != nil {
		return fmt.Errorf("getting pod %s/%s: %w", want.Namespace, want.Name, err)
	}
	controller := metav1.GetControllerOf(found)
	same := controller != nil && controller.UID == want.OwnerReferences[0].UID &&
		found.Labels[pavv1.WorkflowLabel] == want.Labels[pavv1.WorkflowLabel] &&
		found.Labels[pavv1.StageLabel] == want.Labels[pavv1.StageLabel] &&
		found.Annotations[pavv1.AttemptAnnotation] == want.Annotations[pavv1.AttemptAnnotation] &&
		found.Annotations[pavv1.NodeAnnotation] == want.Annotations[pavv1.NodeAnnotation]
	if !same {
		return fmt.Errorf("pod %s/%s: %w", want.Namespace, want.Name, ErrForeign)
	}
	*want = *found
	return nil
}

// Stop deletes a pod, with its own grace period. The API server marks a pod first and then removes it; if it could not do
// the second, as the connection broke in between, it expects to be asked again.
func (r *Runner) Stop(ctx context.Context, pod *corev1.Pod) error {
	return r.stop(ctx, pod, client.Preconditions{UID: &pod.UID})
}

// StopAsSeen is Stop for what was decided from the status of a pod, such as that it has not started. If the API server has another
// version of the pod, the error is a conflict, and the pod stays.
func (r *Runner) StopAsSeen(ctx context.Context, pod *corev1.Pod) error {
	return r.stop(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
}

func (r *Runner) stop(ctx context.Context, pod *corev1.Pod, expected client.Preconditions) error {
	marked, grace := pod.DeletionTimestamp != nil, pod.DeletionGracePeriodSeconds
	if marked && (len(pod.Finalizers) > 0 || grace != nil && *grace > 0) {
		return nil
	}
	err := r.Client.Delete(ctx, pod, expected)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// Release removes the finalizer of a pod whose outcome is recorded.
func (r *Runner) Release(ctx context.Context, pod *corev1.Pod) error {
	before := pod.DeepCopy()
	if !controllerutil.RemoveFinalizer(pod, pavv1.PodFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, pod, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
