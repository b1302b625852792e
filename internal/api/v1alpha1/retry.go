package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RetryFormat is the form of RetryAnnotation's value.
const RetryFormat = "2006-01-02T15:04:05.000000Z07:00"

// RetryAsked returns when somebody asked, by RetryAnnotation, for the next attempt; the zero time where
// nobody did, or what is there is no time. Clocks differ: what has yet to come by ours is taken for now.
//
// The failure that an attempt waits after must be older than that, or the wish was another's.
func RetryAsked(object metav1.Object, now time.Time) time.Time {
	asked, err := time.Parse(time.RFC3339Nano, object.GetAnnotations()[RetryAnnotation])
	if err != nil {
		return time.Time{}
	}
	if asked.After(now) {
		return now
	}
	return asked
}
