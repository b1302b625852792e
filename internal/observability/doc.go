// Package observability makes the loggers, event recorders, and servers of metrics and profiles of both agents. It
// decides nothing about what is logged; no caller may log secrets, volume contexts or rendered pods.
package observability
