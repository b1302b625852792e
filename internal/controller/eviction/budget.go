package eviction

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// BudgetReconciler maintains a PodDisruptionBudget in each namespace that is open to workflow pods.
type BudgetReconciler struct {
	// Client reads from the cache and writes. Of namespaces, the cache has those with the label
	// AllowPodsLabel only, and of PodDisruptionBudgets those named BudgetName.
	Client client.Client

	// Live reads from the API server: staging pods are not in the cache.
	Live client.Reader
}

// unusedRecheck is the time to the next check whether staging pods are left in a closed namespace. They are not
// watched.
const unusedRecheck = 30 * time.Second

// Register adds the reconciler and its watches to the manager. Requests are for namespaces.
func (r *BudgetReconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	isPaVs := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == pavv1.Driver })
	return ctrl.NewControllerManagedBy(mgr).
		Named("protection").
		For(&corev1.Namespace{}).
		Watches(&policyv1.PodDisruptionBudget{}, handler.EnqueueRequestsFromMapFunc(ofBudget), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(isPaVs)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "protection", observability.Namespace, nil)).
		Complete(r)
}

func ofBudget(_ context.Context, budget client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: budget.GetNamespace()}}}
}

func (r *BudgetReconciler) all(ctx context.Context, _ client.Object) []ctrl.Request {
	namespaces := &corev1.NamespaceList{}
	if err := r.Client.List(ctx, namespaces); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look namespaces up")
		return nil
	}
	requests := []ctrl.Request{{NamespacedName: types.NamespacedName{Name: workflow.DefaultNamespace}}}
	for i := range namespaces.Items {
		requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: namespaces.Items[i].Name}})
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *BudgetReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o, err := r.gather(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	a := decideBudget(o)
	if a == removeBudget {
		used, err := r.isUsed(ctx, o.namespace)
		if err != nil {
			return ctrl.Result{}, err
		}
		if used {
			return ctrl.Result{RequeueAfter: unusedRecheck}, nil
		}
	}
	return reconcile.Result(r.act(ctx, o, a))
}

// isUsed reports whether there are staging pods in a namespace. Their clients need them, although no new ones may run
// there.
func (r *BudgetReconciler) isUsed(ctx context.Context, namespace string) (bool, error) {
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := r.Live.List(ctx, pods, client.InNamespace(namespace), client.Limit(1), client.MatchingLabels{pavv1.WorkflowLabel: pavv1.WorkflowStaging})
	if err != nil {
		return false, fmt.Errorf("looking up staging pods of namespace %q: %w", namespace, err)
	}
	return len(pods.Items) > 0, nil
}

// gather reads from the cache what the decision depends on.
func (r *BudgetReconciler) gather(ctx context.Context, namespace string) (budgetSnapshot, error) {
	o := budgetSnapshot{namespace: namespace, open: namespace == workflow.DefaultNamespace}
	labelled, driver, budget := &corev1.Namespace{}, &storagev1.CSIDriver{}, &policyv1.PodDisruptionBudget{}
	found, err := r.find(ctx, client.ObjectKey{Name: namespace}, labelled)
	if err != nil {
		return o, err
	}
	o.open = o.open || found
	o.leaving = found && labelled.DeletionTimestamp != nil
	if found, err = r.find(ctx, client.ObjectKey{Name: pavv1.Driver}, driver); err != nil {
		return o, err
	} else if found {
		o.driver = driver
	}
	if found, err = r.find(ctx, client.ObjectKey{Namespace: namespace, Name: BudgetName}, budget); err != nil {
		return o, err
	} else if found {
		o.budget = budget
	}
	return o, nil
}

func (r *BudgetReconciler) find(ctx context.Context, key client.ObjectKey, into client.Object) (found bool, err error) {
	err = r.Client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %q: %w", into, key, err)
	}
	return true, nil
}

func (r *BudgetReconciler) act(ctx context.Context, o budgetSnapshot, a budgetAction) error {
	var err error
	switch a {
	case keepBudget:
	case createBudget:
		err = r.Client.Create(ctx, budgetIn(o.namespace, o.driver))
		if apierrors.IsAlreadyExists(err) {
			return reconcile.ErrStale
		}
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil
		}
	case updateBudget:
		changed := o.budget.DeepCopy()
		correct(changed, o.driver)
		err = r.Client.Patch(ctx, changed, client.MergeFromWithOptions(o.budget, client.MergeFromWithOptimisticLock{}))
	case removeBudget:
		err = r.Client.Delete(ctx, o.budget, client.Preconditions{UID: &o.budget.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing PodDisruptionBudget %q of namespace %q (%s): %w", BudgetName, o.namespace, a, err)
	}
	return nil
}
