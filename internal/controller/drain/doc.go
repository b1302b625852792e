// Package drain lets the drain of a node end where pods of DaemonSets use volumes that a daemon serves. Such pods
// stay on a node that is drained, and their staging pods, which a PodDisruptionBudget protects, would stay with
// them. On a cordoned node, the protection of a staging pod goes by a label while all of its clients belong to
// DaemonSets. It evicts nothing, and touches no pod but by that label.
package drain
