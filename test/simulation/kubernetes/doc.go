// Package kubernetes is the rest of Kubernetes in the simulated world: who binds claims, protects and collects
// objects, schedules pods and runs them on nodes. Each does one small step at a time, and reads the store as it
// is; only PaV's agents have views that are behind.
//
// It is simpler than the real one: pods have one container; a node has room for all pods; nothing is preempted.
package kubernetes
