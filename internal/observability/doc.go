// Package observability has the loggers, event recorders, and servers of metrics and profiles of both agents. It does
// not decide what is logged; callers must not log secrets, volume contexts or rendered pods.
package observability
