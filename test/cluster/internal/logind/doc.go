// Package logind runs systemd's logind on a node, so that a kubelet can delay the shutdown of the node and end the pods
// first. Nodes have no systemd. So this package runs the system bus and a stand-in of systemd as well, which knows one
// unit, poweroff.target, and powers nothing off: the caller of Shutdown stops the node.
package logind
