package cleanup

import (
	"context"
	"fmt"
	"time"

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
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// StageReconciler releases the stages of nodes that are gone, and stages that no work was done for.
type StageReconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: the cache alone must not decide that a node is gone, or that no pod there needs
	// the volume.
	Live client.Reader

	// Now returns the time of the cluster, which the times in objects are compared with.
	Now func() time.Time
}

// Register adds the reconciler and its watches to the manager.
func (r *StageReconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("stage").
		For(&pavv1.PavStage{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.stagesOn), builder.WithPredicates(reconcile.OnNodeGone)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "stage", observability.Stage, r.keys)).
		Complete(r)
}

// keys returns the log keys of a stage, besides its name.
func (r *StageReconciler) keys(name types.NamespacedName) []any {
	stage := &pavv1.PavStage{}
	if err := r.Client.Get(context.Background(), name, stage); err != nil { //nolint:forbidigo // it reads the cache
		return nil
	}
	spec := &stage.Spec
	return []any{observability.Volume, spec.VolumeName, observability.Claim, observability.Name(spec.ClaimRef.Namespace, spec.ClaimRef.Name),
		observability.Node, spec.NodeName, observability.Provisioner, spec.Provisioner}
}

func (r *StageReconciler) stagesOn(ctx context.Context, node client.Object) []ctrl.Request {
	stages := &pavv1.PavStageList{}
	if err := r.Client.List(ctx, stages, client.MatchingFields{reconcile.StagesByNode: node.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look stages up", "node", node.GetName())
		return nil
	}
	requests := make([]ctrl.Request, len(stages.Items))
	for i := range stages.Items {
		requests[i].Name = stages.Items[i].Name
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *StageReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	stage := &pavv1.PavStage{}
	if err := r.Client.Get(ctx, request.NamespacedName, stage); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		node, err := nodeOf(ctx, reader, stage)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !reconcile.IsNodeGone(node) {
			return r.checkUnused(ctx, stage)
		}
	}
	return reconcile.Result(r.release(ctx, stage, "its node is gone"))
}

// nodeOf returns the stage's node, or nil if there is none of that name.
func nodeOf(ctx context.Context, reader client.Reader, stage *pavv1.PavStage) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := reader.Get(ctx, types.NamespacedName{Name: stage.Spec.NodeName}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Node %q: %w", stage.Spec.NodeName, err)
	}
	return node, nil
}

// release removes the finalizers of the stage's pods, then that of the stage. Pods come first, as no controller looks
// for them once the stage is gone.
func (r *StageReconciler) release(ctx context.Context, stage *pavv1.PavStage, why string) error {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := r.Live.List(ctx, pods, client.MatchingLabels{pavv1.StageLabel: stage.Name}); err != nil {
		return fmt.Errorf("looking up the pods of PavStage %q: %w", stage.Name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		if err := r.removeFinalizer(ctx, pod, pavv1.PodFinalizer); err != nil {
			return fmt.Errorf("releasing Pod %q: %w", pod.Namespace+"/"+pod.Name, err)
		}
	}

	// It is deleted before the finalizer is removed: a stage without a finalizer would look like the record of a
	// failure.
	if stage.DeletionTimestamp == nil {
		err := r.Client.Delete(ctx, stage, client.Preconditions{UID: &stage.UID, ResourceVersion: &stage.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting PavStage %q: %w", stage.Name, err)
		}
		return nil // the deletion is an event, and brings the next pass
	}
	if err := r.removeFinalizer(ctx, stage, pavv1.StageFinalizer); err != nil {
		return fmt.Errorf("releasing PavStage %q: %w", stage.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("let go of a stage", observability.Reason, why)
	return nil
}

func (r *StageReconciler) removeFinalizer(ctx context.Context, object client.Object, finalizer string) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok || !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	err := r.Client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return client.IgnoreNotFound(err)
}
