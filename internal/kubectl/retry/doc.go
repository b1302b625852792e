// Package retry is "kubectl pav retry": it asks PaV to make the next attempt now where one has failed. It
// writes an annotation and nothing else; what comes of that is the agents' business.
package retry
