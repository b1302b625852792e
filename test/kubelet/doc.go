// Package kubelet is a kubelet by hand: it plays scheduler, kubelet and container runtime for a real node
// agent, which runs in a process of its own, on a node that is but a directory. Pods of workflows get their
// /pav through the agent's socket and run a function of the test in place of their containers, and the
// four calls of a volume's life are made as kubelet makes them, at the paths that kubelet has. It
// decides nothing that kubelet leaves to the driver, and knows nothing of how the agent works.
//
// It makes real mounts, so tests that use it must run in a mount namespace of their own (package ownmounts).
package kubelet
