// Package flush has the volumes of a node written back before a snapshot of them is made: what the node has in memory of a
// volume is written to its storage when the controller agent requests that in an annotation of the PavStage, and the status
// of the PavStage answers.
//
// It decides which volumes are written back, and when. Package pavdir does that, so that a volume that hangs holds up neither
// the others nor the agent. Package flush never stages, mounts or unmounts anything.
package flush
