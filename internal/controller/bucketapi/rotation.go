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

// RotationOf returns the request for a new account in the annotation of the object that asks for access, unless the record has it, or a
// later one: the administrator may have requested that in the record.
func RotationOf(requester, record metav1.Object) Rotation {
	requested := requester.GetAnnotations()[pavv1.RotateAnnotation]
	at, err := time.Parse(time.RFC3339Nano, requested)
	if err != nil {
		return Rotation{}
	}
	if has, err := time.Parse(time.RFC3339Nano, record.GetAnnotations()[pavv1.RotateAnnotation]); err == nil && !at.After(has) {
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
