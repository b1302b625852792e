// Package podplan decides what a definition makes of a request: whether a claim can be provisioned or a volume be
// staged, what the volume and the records of it will be, and which pods are to run. The controller agent plans the pods
// of claims and volumes with it, node agents those of volumes on their node.
//
// It evaluates templates and reads what pods wrote. It never writes to the API server, reads nothing from it but the
// claims that templates look up, and touches no node.
package podplan
