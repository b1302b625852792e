// Package logs is "kubectl pav logs": it shows the logs of a volume's workflow pods in the order of time, and follows
// pods that start later. It never diagnoses a volume; package status does.
package logs
