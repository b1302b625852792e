// Package topology interprets lists of node labels: the nodes from which a volume can be used, and the nodes that a
// StorageClass allows. It consists of functions of labels, and does no I/O.
//
// A list of TopologyLabels is a list of alternatives. A node is in the topology if it has all labels of at least one
// of them; the empty list means every node. Parse ensures that no alternative is empty.
package topology
