// Package podplan evaluates a definition for a request: whether a claim can be provisioned or a volume be staged, the
// resulting volume and its records, and the pods that must run. The controller agent plans the pods of claims and
// volumes with it, and node agents the pods of volumes on their node.
//
// It evaluates templates and reads the results of pods. It never writes to the API server, reads only the claims that
// templates look up, and never changes a node.
package podplan
