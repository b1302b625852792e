// Package observe makes the loggers and event recorders of PaV's agents. It decides nothing about
// what is logged; no caller may log secrets, volume contexts or rendered pods.
package observe
