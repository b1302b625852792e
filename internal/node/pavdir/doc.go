// Package pavdir owns the /pav directories of a node: it makes the directory that a stage's pods
// share, or one that a pod keeps for itself, gives it to their containers, sees what they leave
// there, and takes it away again. It knows directories and mounts, and nothing of the API server; it
// never trusts a byte that a pod wrote, and never removes anything across a mount.
//
// A directory is a mount of its own, in a peer group of its own, so that what a privileged container
// mounts below its /pav appears in it, and stays when the container has gone.
package pavdir
