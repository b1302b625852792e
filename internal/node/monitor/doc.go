// Package monitor watches the stages of a node between kubelet's calls: it restages volumes whose mounts died while
// pods use them, unstages volumes that kubelet has lost track of, withdraws a volume that its staging pod replaced,
// and removes the finalizers of workflow pods whose outcome is recorded.
//
// It decides when to work on a stage; package stage does the work. Package monitor never mounts anything, never
// creates a pod, and never stages a volume a second time while clients may still write to it.
package monitor
