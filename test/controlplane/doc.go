// Package controlplane runs a real API server, etcd and Kubernetes' controllers of volumes, without nodes, and installs PaV's
// objects in it. It runs no agents, and answers for no kubelet.
package controlplane
