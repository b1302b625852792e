// Package cluster starts and removes clusters and operates on their nodes. It combines the programs, the certificates,
// the configuration and the nodes' first processes. Every operation can be repeated after a crash of any part,
// including this program. For that, each part of a cluster is recorded in the state directory before it is created, and
// processes are identified by their identity, not by their names.
package cluster
