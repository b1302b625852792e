package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RetryFormat is the form of RetryAnnotation's value.
const RetryFormat = "2006-01-02T15:04:05.000000Z07:00"

// RetryRequested returns when a retry was requested with RetryAnnotation; the zero time if none was requested, if the value
// is not a time, or if it is the value that the last attempt handled. A request counts once, even if the clock that wrote it
// is ahead of this one: a time after now is taken as now.
//
// A request is for the attempt after a failure only if it is later than the failure.
func RetryRequested(object metav1.Object, lastHandled string, now time.Time) time.Time {
	value := object.GetAnnotations()[RetryAnnotation]
	if value == lastHandled {
		return time.Time{}
	}
	requested, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return time.Time{}
	}
	if requested.After(now) {
		return now
	}
	return requested
}
