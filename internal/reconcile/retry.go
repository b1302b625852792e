package reconcile

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// ErrStale means that the cache, on which a decision was made, is behind the API server.
var ErrStale = errors.New("the cache is behind the API server")

// The delays between passes over one object that end with an error, because the API server was down or returned
// errors. They stay short, as every event of the object is a pass and counts: when the API server recovers from a
// storm of errors, no object must wait for minutes.
const (
	first = 250 * time.Millisecond
	most  = 5 * time.Second

	// catchUp is how long the cache may take to catch up with the API server.
	catchUp = 250 * time.Millisecond
)

// Later ends a pass that is repeated after some time although nothing has failed.
type Later struct{ After time.Duration } //nolint:errname // it ends a pass, and is no failure

func (l *Later) Error() string { return "to be repeated in " + l.After.String() }

// Result maps the error of a pass to the result of Reconcile. A lost race is not an error: the pass is repeated,
// without a log line, when the cache has caught up.
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
