package eviction

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// DrainReconciler sets EvictableLabel on staging pods, and removes it.
type DrainReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: neither staging pods nor their clients are in the cache.
	Live client.Reader

	// Now returns the time of the cluster, which the times in objects are compared with.
	Now func() time.Time
}

// allLabelled is the request to remove the labels from pods of nodes that are not cordoned any more, as after a time
// without a leader.
var allLabelled = ctrl.Request{}

// Register adds the reconciler and its watches to the manager. Requests are for nodes.
func (r *DrainReconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("drain").
		For(&corev1.Node{}, builder.WithPredicates(cordonChanges)).
		Watches(&pavv1.PavStage{}, handler.EnqueueRequestsFromMapFunc(r.cordonedNodeOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
			queue.Add(allLabelled)
			return nil
		})).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "drain", observability.Node, nil)).
		Complete(r)
}

// cordonChanges passes nodes that are cordoned when they are first seen, and changes of that.
var cordonChanges = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return isCordonedNode(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return isCordonedNode(e.ObjectNew) != isCordonedNode(e.ObjectOld) },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

func isCordonedNode(object client.Object) bool {
	node, ok := object.(*corev1.Node)
	return ok && isCordoned(node)
}

func (r *DrainReconciler) cordonedNodeOf(ctx context.Context, object client.Object) []ctrl.Request {
	stage, ok := object.(*pavv1.PavStage)
	if !ok {
		return nil
	}
	node, err := findNode(ctx, r.Client, stage.Spec.NodeName)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look a node up")
	}
	if node == nil || !isCordoned(node) {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: node.Name}}}
}

// findNode returns a node, or nil if it does not exist.
func findNode(ctx context.Context, reader client.Reader, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := reader.Get(ctx, types.NamespacedName{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Node %q: %w", name, err)
	}
	return node, nil
}

// Reconcile implements reconcile.Reconciler.
func (r *DrainReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request == allLabelled {
		return reconcile.Result(r.protectLabelled(ctx))
	}
	node, err := findNode(ctx, r.Client, request.Name)
	if err != nil || node == nil {
		return ctrl.Result{}, err
	}
	if !isCordoned(node) {
		return reconcile.Result(r.protectLabelled(ctx, client.MatchingFields{"spec.nodeName": node.Name}))
	}
	return r.look(ctx, node)
}

// protectLabelled removes the label from pods whose node is not cordoned.
func (r *DrainReconciler) protectLabelled(ctx context.Context, among ...client.ListOption) error {
	pods := &corev1.PodList{}
	if err := r.Live.List(ctx, pods, append(among, client.HasLabels{pavv1.EvictableLabel})...); err != nil {
		return fmt.Errorf("looking up pods with the label %s: %w", pavv1.EvictableLabel, err)
	}
	var failures []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		node, err := findNode(ctx, r.Client, pod.Spec.NodeName)
		if err != nil || node == nil {
			failures = append(failures, err)
			continue
		}
		failures = append(failures, r.act(ctx, pod, decideDrain(drainSnapshot{cordoned: isCordoned(node), staging: pod})))
	}
	return errors.Join(failures...)
}

// look decides about the staging pods of a cordoned node.
func (r *DrainReconciler) look(ctx context.Context, node *corev1.Node) (ctrl.Result, error) {
	stages := &pavv1.PavStageList{}
	if err := r.Client.List(ctx, stages, client.MatchingFields{reconcile.StagesByNode: node.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("looking up the stages of node %q: %w", node.Name, err)
	}
	if len(stages.Items) == 0 {
		return ctrl.Result{}, nil // The creation of the first one is an event.
	}
	pods := &corev1.PodList{}
	if err := r.Live.List(ctx, pods, client.MatchingFields{"spec.nodeName": node.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("looking up the pods of node %q: %w", node.Name, err)
	}
	// The cache may not know yet that the node is uncordoned.
	live, err := findNode(ctx, r.Live, node.Name)
	if err != nil || live == nil {
		return ctrl.Result{}, err
	}
	var failures []error
	for i := range stages.Items {
		failures = append(failures, r.decideStage(ctx, &stages.Items[i], isCordoned(live), pods.Items))
	}
	if err = errors.Join(failures...); err != nil {
		return reconcile.Result(err)
	}
	return ctrl.Result{RequeueAfter: nextLook(live, pods.Items, r.Now())}, nil
}

// decideStage decides about the staging pods of a stage, among the pods of its node.
func (r *DrainReconciler) decideStage(ctx context.Context, stage *pavv1.PavStage, cordoned bool, pods []corev1.Pod) error {
	staging := stagingPods(stage, pods)
	if len(staging) == 0 {
		return nil
	}
	pv := &corev1.PersistentVolume{}
	if err := r.Live.Get(ctx, types.NamespacedName{Name: stage.Spec.VolumeName}, pv); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading PersistentVolume %q: %w", stage.Spec.VolumeName, err)
	}
	clients := clientsOf(stage, pv.Spec.ClaimRef, pods)
	var failures []error
	for _, pod := range staging {
		failures = append(failures, r.act(ctx, pod, decideDrain(drainSnapshot{cordoned: cordoned, staging: pod, clients: clients})))
	}
	return errors.Join(failures...)
}

// stagingPods returns the staging pods of a stage.
func stagingPods(stage *pavv1.PavStage, pods []corev1.Pod) []*corev1.Pod {
	var found []*corev1.Pod
	for i := range pods {
		if pod := &pods[i]; pod.Labels[pavv1.WorkflowLabel] == pavv1.WorkflowStaging && workflow.Belongs(pod, stage.UID) {
			found = append(found, pod)
		}
	}
	return found
}

// clientsOf returns the pods that the volume is staged for, without those that have ended: they use the claim for
// which it was staged, or the one that it is bound to by now.
func clientsOf(stage *pavv1.PavStage, bound *corev1.ObjectReference, pods []corev1.Pod) []*corev1.Pod {
	claims := []types.NamespacedName{{Namespace: stage.Spec.ClaimRef.Namespace, Name: stage.Spec.ClaimRef.Name}}
	if bound != nil {
		claims = append(claims, types.NamespacedName{Namespace: bound.Namespace, Name: bound.Name})
	}
	var found []*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		isFor := stage.Spec.Client == nil || stage.Spec.Client.UID == pod.UID
		if isFor && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && protocol.UsesOneOf(pod, claims) {
			found = append(found, pod)
		}
	}
	return found
}

func (r *DrainReconciler) act(ctx context.Context, pod *corev1.Pod, a drainAction) error {
	changed := pod.DeepCopy()
	switch a {
	case keepLabel:
		return nil
	case allowEviction:
		metav1.SetMetaDataLabel(&changed.ObjectMeta, pavv1.EvictableLabel, "true")
	case preventEviction:
		delete(changed.Labels, pavv1.EvictableLabel)
	}
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the label %s of Pod %q (%s): %w", pavv1.EvictableLabel, observability.Name(pod.Namespace, pod.Name), a, err)
	}
	ctrl.LoggerFrom(ctx).Info("changed whether a staging pod may be evicted", "pod", observability.Name(pod.Namespace, pod.Name), "evictable", a == allowEviction)
	return nil
}
