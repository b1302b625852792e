// Package machine implements the first process of a node. This program runs in its own namespaces, and they make up the
// node. It mounts the file systems of the node and sets up the network. Then it starts, restarts and ends components on
// request over a socket. If it is killed, the node and all its processes end.
//
// The start takes two program executions in the same process. The first one enters the node's cgroups and creates a
// cgroup namespace. The kernel applies a new cgroup namespace only to the calling thread. The process therefore
// executes itself again, so that all its threads are in the namespace.
package machine
