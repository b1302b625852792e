package flush

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// workers is how many volumes are waited for at once, each for the timeout at most.
const workers = 16

// Watch adds a Flusher to the manager, whose cache has the metadata of the node's PavStages. A PavStage that is changed at all
// is looked at as long as it has a request without an answer: it may be Staged now.
func Watch(mgr manager.Manager, f *Flusher) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("flush").
		For(&pavv1.PavStage{}, builder.OnlyMetadata, builder.WithPredicates(f.predicate())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Second, 30*time.Second),
		}).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "flush", observability.Stage, nil)).
		Complete(f)
}

func (f *Flusher) predicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return f.pending(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return f.pending(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool {
			f.forget(e.Object.GetName())
			return false
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
