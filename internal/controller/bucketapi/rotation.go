package bucketapi

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Rotation is a request for a new account that a record does not have yet. The zero value is for none.
type Rotation struct {
	// Requested is the value of the annotation, and at is when the request counts.
	Requested string
	at        time.Time
}

// RotationOf returns the request for a new account in the annotation of the object that asks for access, unless the record has it, or the
// present account began after it. One request is passed on at a time, so that a tenant cannot make PaV write at any rate: as long as the
// record has one that is not served, the next one waits. The record may also have a later one, of the administrator.
func RotationOf(requester metav1.Object, record *pavv1.PavBucketAccess) Rotation {
	requested := requester.GetAnnotations()[pavv1.RotateAnnotation]
	at, err := time.Parse(time.RFC3339Nano, requested)
	current := record.Status.Current
	if err != nil || current == nil || !at.After(current.Began()) {
		return Rotation{}
	}
	if has, err := time.Parse(time.RFC3339Nano, record.Annotations[pavv1.RotateAnnotation]); err == nil && has.After(current.Began()) {
		return Rotation{}
	}
	return Rotation{Requested: requested, at: at}
}

// IsDue reports whether the request is to be passed on. One of the future is not: it would take the place of requests that are made until
// then.
func (r Rotation) IsDue(now time.Time) bool { return r.Requested != "" && !r.at.After(now) }

// Next returns when to look again at the request, which may be of the far future; 0 for never.
func (r Rotation) Next(now time.Time) time.Duration {
	if r.Requested == "" {
		return 0
	}
	return min(max(r.at.Sub(now), time.Second), 24*time.Hour)
}
