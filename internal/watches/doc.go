// Package watches says which events of PaV's objects are a reason to act, for the watches of both agents.
// It reads objects, and neither changes them nor does any I/O.
package watches
