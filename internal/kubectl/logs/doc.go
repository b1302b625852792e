// Package logs is "kubectl pav logs": it shows what the workflow pods of a volume say, in the order of time, and
// follows those that come. It knows nothing of what is wrong with a volume; package status does.
package logs
