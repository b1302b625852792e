package monitor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// registerOutcomes adds outcomes and its watches to the manager. A pod is reconciled when it or its stage changes:
// its last event may arrive before its outcome is recorded.
func registerOutcomes(mgr manager.Manager, m *Monitor) error {
	o := &outcomes{client: m.client, runner: m.runner, cache: mgr.GetCache()}
	return ctrl.NewControllerManagedBy(mgr).
		Named("outcome").
		For(&corev1.Pod{}, builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(isHeld))).
		Watches(&pavv1.PavStage{}, handler.EnqueueRequestsFromMapFunc(o.heldOf), builder.OnlyMetadata).
		WithOptions(controller.Options{RateLimiter: limiter[ctrl.Request]()}).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "outcome", observability.Pod, nil)).
		Complete(o)
}

// isHeld reports whether only PaV's finalizer keeps a pod that is being deleted.
func isHeld(pod client.Object) bool {
	return pod.GetDeletionTimestamp() != nil && controllerutil.ContainsFinalizer(pod, pavv1.PodFinalizer)
}

// outcomes removes the finalizers of workflow pods that are being deleted and whose outcome is recorded.
type outcomes struct {
	client client.Client // reads from the API server
	runner *workflow.Runner
	cache  client.Reader // to list pods
}

// heldOf maps a stage to its pods whose finalizer may have to be removed.
func (o *outcomes) heldOf(ctx context.Context, stage client.Object) []ctrl.Request {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := o.cache.List(ctx, pods, client.MatchingLabels{pavv1.StageLabel: stage.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look pods up", observability.Stage, stage.GetName())
		return nil
	}
	var requests []ctrl.Request
	for i := range pods.Items {
		if pod := &pods.Items[i]; isHeld(pod) {
			requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}})
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (o *outcomes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := o.client.Get(ctx, request.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if state := workflow.Observe(pod); state != workflow.Succeeded && state != workflow.Failed {
		return ctrl.Result{}, nil
	}
	recorded, err := o.recorded(ctx, pod)
	if err != nil || !recorded {
		return ctrl.Result{}, err
	}
	err = o.runner.Release(ctx, pod)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: burst}, nil // The pod was changed since it was read.
	}
	return ctrl.Result{}, err
}

// recorded reports whether the pod is not needed any more: its stage is gone, or has recorded later pods. The end of
// the staging pod of a staged volume is recorded by the monitor, which then releases the pod itself.
func (o *outcomes) recorded(ctx context.Context, pod *corev1.Pod) (bool, error) {
	name := pod.Labels[pavv1.StageLabel]
	if owner := metav1.GetControllerOf(pod); owner != nil {
		name = owner.Name
	}
	if name == "" {
		return true, nil
	}
	stage := &pavv1.PavStage{}
	if err := o.client.Get(ctx, client.ObjectKey{Name: name}, stage); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("getting PavStage %q: %w", name, err)
	}
	return !workflow.Belongs(pod, stage.UID) || !needs(&stage.Status, pod), nil
}

// needs reports whether the outcome of a pod is still to be recorded in a status that was read after the pod. Every
// pod is recorded before it is created, so a pod that is not recorded is of an earlier attempt.
func needs(status *pavv1.PavStageStatus, pod *corev1.Pod) bool {
	is := func(ref *pavv1.PodReference) bool {
		return ref != nil && ref.Namespace == pod.Namespace && ref.Name == pod.Name
	}
	return is(status.StagingPod) || is(status.ExpansionPod()) || is(status.UnstagingPod) || is(status.ValidationPod) && !status.Validated
}
