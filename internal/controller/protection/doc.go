// Package protection keeps staging pods from being evicted under their clients, by a PodDisruptionBudget
// in every namespace that is open to workflow pods. It touches no budget of another name, never one
// that it did not write where a namespace is closed, and no pod. That of a namespace that was closed goes
// with the last staging pod there.
package protection
