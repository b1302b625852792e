// Package integration tests the controller agent against a real kube-apiserver, etcd and
// kube-controller-manager, under the rights that the agent has in a cluster. There are no nodes and
// no pods run: what a node agent or a scheduler would write, the tests write.
package integration
