// Package logs is "kubectl pav logs": it shows the logs of the workflow pods of a volume, a snapshot or a bucket in the
// order of time, and follows pods that start later. It never diagnoses anything; package status does.
package logs
