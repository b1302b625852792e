// Package topology says what lists of node labels mean: from which nodes a volume can be used, and
// which nodes a StorageClass allows. It is functions of values: it knows no volumes and no nodes but
// by their labels, and does no I/O.
//
// A list of TopologyLabels is one of alternatives. A node is in the topology if it has all labels of
// any one of them; the empty list means every node. That no alternative is empty, Parse sees to.
package topology
