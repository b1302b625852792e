// Package metrics has the table of all metrics that both agents export, and counts what workflows do. It never reads
// the API server, and no metric has the name of a volume, a claim or a pod: the number of series is bounded by that of
// provisioners.
package metrics
