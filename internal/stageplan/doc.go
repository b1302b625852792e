// Package stageplan says what a definition makes of a volume that is to be available on a node: whether it may
// be staged, what the record of that is, and which pods are to run for it. It evaluates templates; it asks
// the API server nothing but what templates look up, changes nothing, and touches no node.
package stageplan
