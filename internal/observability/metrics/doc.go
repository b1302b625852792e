// Package metrics has the table of all metrics that both agents export, and counts the outcomes of workflows. It
// never reads from the API server. No metric has the name of a volume, a claim or a pod: the number of series is
// limited by the number of provisioners.
package metrics
