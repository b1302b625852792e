// Package eviction decides whether staging pods can be evicted.
//
// BudgetReconciler prevents the eviction of staging pods while clients use their volumes, with a PodDisruptionBudget
// in every namespace that is open to workflow pods. It changes no budget of another name and, in a closed namespace,
// none that it did not write. The budget of a namespace that was closed is deleted with the last staging pod there.
//
// DrainReconciler lets the drain of a node complete if pods of DaemonSets use volumes. Such pods stay on a drained
// node, and their staging pods would stay with them. On a cordoned node it sets the label that excludes a staging pod
// from the budget, while all clients of the pod belong to DaemonSets.
//
// Neither evicts a pod, nor changes anything but that label of a pod.
package eviction
