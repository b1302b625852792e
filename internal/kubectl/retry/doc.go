// Package retry is "kubectl pav retry": after a failed attempt, it asks PaV to make the next one now. It only writes
// an annotation; the agents do the rest.
package retry
