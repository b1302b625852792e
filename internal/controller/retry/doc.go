// Package retry says when a reconciler runs again after an error. It never loops, sleeps or logs.
package retry
