package reconcile

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// RetryRequests remembers, by name of the object, the retry requests (pavv1.RetryAnnotation) that an attempt has
// granted: each request counts once, even if the clock that wrote it is ahead. An agent that restarts may grant a
// request twice. The zero value is ready for use.
type RetryRequests struct {
	mu      sync.Mutex
	granted map[string]string // the last value of the annotation
}

// Asked returns when a retry was requested that no attempt has granted; the zero time if there is no such request.
func (r *RetryRequests) Asked(object metav1.Object, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value := object.GetAnnotations()[pavv1.RetryAnnotation]; value == "" || r.granted[object.GetName()] == value {
		return time.Time{}
	}
	return pavv1.RetryAsked(object, now)
}

// Grant notes that an attempt has begun.
func (r *RetryRequests) Grant(object metav1.Object) {
	value := object.GetAnnotations()[pavv1.RetryAnnotation]
	if value == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.granted == nil {
		r.granted = map[string]string{}
	}
	r.granted[object.GetName()] = value
}

// Forget forgets an object that is deleted.
func (r *RetryRequests) Forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.granted, name)
}
