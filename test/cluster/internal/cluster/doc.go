// Package cluster brings clusters up and down and does things to their nodes: it puts together the
// programs, the certificates, the configuration and the nodes' first processes. All of it can be
// repeated after a crash of any part, this program included: what a cluster consists of is noted in
// its state directory before it is made, and processes are told apart by their identity, not by names.
package cluster
