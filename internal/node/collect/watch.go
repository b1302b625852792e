package collect

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// nodeNameField is the field by which the API server selects the pods of a node.
const nodeNameField = "spec.nodeName"

// CacheOptions limits a cache to the controller agent's pods on a node, and to what Judge needs of them. The agent's
// other cache selects the pods of stages, by their labels: a pod of the controller agent is labeled before its node is
// known.
func CacheOptions(nodeName string) (cache.Options, error) {
	ours, err := workflow.PodsOfController()
	if err != nil {
		return cache.Options{}, err
	}
	return cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {
		Label:     ours,
		Field:     fields.OneTermEqualSelector(nodeNameField, nodeName),
		Transform: trimPod,
	}}}, nil
}

// trimPod removes from a pod in the cache what isDue does not need.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, DeletionTimestamp: pod.DeletionTimestamp,
			Labels: pod.Labels,
		},
		Spec:   workflow.KeepForJudge(&pod.Spec),
		Status: pod.Status,
	}
	if workflow.IsReported(pod) {
		kept.Annotations = map[string]string{pavv1.ResultAnnotation: ""}
	}
	return kept, nil
}

// isDue reports whether the result of a pod is to be written, perhaps as soon as it has created /pav/ready.
func isDue(pod *corev1.Pod) bool {
	state := workflow.Judge(pod)
	return !workflow.IsReported(pod) && (state.IsOver() || state == workflow.Running && workflow.MayBeReady(pod))
}

// retryDelay and longestRetryDelay limit how soon a report that failed is repeated.
const (
	retryDelay        = 100 * time.Millisecond
	longestRetryDelay = 30 * time.Second
)

// WatchPods makes the collector report the result of each pod of the cache, which has CacheOptions, as soon as it can
// be known.
func WatchPods(mgr manager.Manager, pods cache.Cache, c *Collector) error {
	captureQueue := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.queue = func(pod types.NamespacedName) { q.Add(ctrl.Request{NamespacedName: pod}) }
		return nil
	})
	due := predicate.NewTypedPredicateFuncs(isDue)
	return ctrl.NewControllerManagedBy(mgr).
		Named("result").
		WatchesRawSource(source.Kind(pods, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}, due)).
		WatchesRawSource(captureQueue).
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](retryDelay, longestRetryDelay)}).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "result", observability.Pod, nil)).
		Complete(&reporter{pods: pods, collector: c})
}

// reporter reports the results of pods.
type reporter struct {
	pods      client.Reader
	collector *Collector
}

// Reconcile implements reconcile.Reconciler.
func (r *reporter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := r.pods.Get(ctx, request.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !isDue(pod) {
		return ctrl.Result{}, nil
	}
	err := r.collector.Report(ctx, pod)
	if errors.Is(err, ErrBusy) {
		return ctrl.Result{RequeueAfter: retryDelay}, nil
	}
	return ctrl.Result{}, err
}
