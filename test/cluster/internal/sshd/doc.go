// Package sshd implements the SSH server of a node. Kubernetes' own tests use SSH and systemctl to stop and start
// kubelet and to examine a node's mounts. SSH sessions, and no other processes of the node, therefore have a systemctl
// and a sudo first in their PATH. This systemctl sends requests to the node's first process.
//
// The server accepts one user, root, and one key. It supports no terminals, no port forwarding and no file transfer.
package sshd
