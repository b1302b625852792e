package reconcile

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// ErrStale means that the API server knows better than the cache on which a decision was made.
var ErrStale = errors.New("the cache is behind the API server")

// The delays between passes over one object that end with an error: the API server was away, or
// answered badly. They stay short, as every event of the object is a pass of its own and counts: an
// API server that comes back after a storm of errors finds nobody asleep for minutes.
const (
	first = 250 * time.Millisecond
	most  = 5 * time.Second

	// catchUp is how long the cache is given to see what the API server has.
	catchUp = 250 * time.Millisecond
)

// Later ends a pass that is to be repeated after some time although nothing has failed.
type Later struct{ After time.Duration } //nolint:errname // it ends a pass, and is no failure

func (l *Later) Error() string { return "to be repeated in " + l.After.String() }

// Result maps the error of a pass to that of Reconcile. A lost race is no failure: the pass is
// repeated quietly once the cache has caught up.
func Result(err error) (ctrl.Result, error) {
	if later, ok := errors.AsType[*Later](err); ok {
		return ctrl.Result{RequeueAfter: later.After}, nil
	}
	if apierrors.IsConflict(err) || errors.Is(err, ErrStale) {
		return ctrl.Result{RequeueAfter: catchUp}, nil
	}
	return ctrl.Result{}, err
}

// Backoff returns the rate limiter of a controller's failures: each object's own, 250 ms doubling to 5 s.
func Backoff() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](first, most)
}
