// Package kubernetes has the rest of Kubernetes in the simulated world: the controllers of claims and
// PersistentVolumes, the snapshot-controller, the garbage collector, the scheduler, and the kubelets with their
// containers. Each of them takes one small step at a time, and reads the current state of the store. Only PaV's agents
// have caches that may be stale.
//
// It is simpler than the real Kubernetes: each pod has one container, each node has room for all pods, and no pod is
// preempted. DaemonSets do not exist, only their pods.
package kubernetes
