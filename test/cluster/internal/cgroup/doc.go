// Package cgroup gives each node cgroup directories of its own in every hierarchy of the machine.
// Kubelets that saw one common tree would take each other's pods for leftovers and kill them.
package cgroup
