// Package cgroup creates separate cgroup directories for each node in every hierarchy of the machine. With one common
// tree, each kubelet would take the pods of the other kubelets for its own leftover pods, and would kill them.
package cgroup
