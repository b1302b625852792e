// Package plan says what a definition makes of a request for a volume: whether it can be met, what
// the volume will be, and which pods are to run for it. It evaluates templates and reads what pods
// wrote; it asks the API server nothing but what templates look up, and changes nothing.
package plan
