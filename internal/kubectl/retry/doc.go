// Package retry is "kubectl pav retry" and "kubectl pav rotate": after a failed attempt, it asks PaV to make the next one now, and it asks
// for another account of an access to buckets. It only writes an annotation; the agents do the rest.
package retry
