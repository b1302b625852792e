// Package process handles processes and locks of the machine. It identifies a process even if a later process has the
// same ID, kills it, and waits until it is gone. It never searches for processes by name.
package process
