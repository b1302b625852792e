// Package process deals with processes and locks of the machine: it tells one process from another
// that later has the same number, ends it and waits until it is gone. It never searches by name.
package process
