// Package sshd is the SSH server of a node. Kubernetes' own tests stop and start kubelet, and look at
// a node's mounts, over SSH and with systemctl; so sessions find a systemctl and a sudo first in their
// PATH, which nothing else on the node does. Systemctl itself asks the node's first process.
//
// It knows one user, root, and one key. There are no terminals, no forwarded ports and no file transfers.
package sshd
