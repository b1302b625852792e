// Package machine is the first process of a node: a program in namespaces of its own that the node
// takes for its machine. It mounts what the node sees, sets up its network, and then starts, restarts
// and ends components as it is told over a socket. Killing it ends the node and all that is in it.
//
// Coming up takes two programs run one after the other in the same process: the first enters the
// node's cgroups and makes a cgroup namespace, which only takes hold of the thread that does it, so
// that it has to replace the process by itself to go on with all threads in there.
package machine
