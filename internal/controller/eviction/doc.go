// Package eviction decides whether staging pods can be evicted.
//
// BudgetReconciler keeps them from being evicted under their clients, by a PodDisruptionBudget in every namespace that
// is open to workflow pods. It touches no budget of another name, and none that it did not write in a namespace that is
// closed. The budget of a namespace that was closed is deleted with the last staging pod there.
//
// DrainReconciler lets the drain of a node end where pods of DaemonSets use volumes. Such pods stay on a node that is
// drained, and their staging pods would stay with them. On a cordoned node it removes the label by which the budget
// selects a staging pod, while all clients of that belong to DaemonSets.
//
// Neither evicts a pod, nor changes one but by that label.
package eviction
