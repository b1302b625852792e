// Package monitor looks after the stages of a node between kubelet's calls: it stages a volume again that died under its
// pods, unstages what kubelet has forgotten, withdraws a volume that its staging pod exchanged, and removes the
// finalizers of workflow pods whose outcome is recorded.
//
// It decides when something is to be done for a stage; package stage does it. Monitor never mounts anything, never
// creates a pod, and never makes a second stage of a volume that may still be written to.
package monitor
