// Package node is the node agent: it registers a CSI driver with its kubelet for every PavProvisioner, stages and
// publishes volumes for the pods of its node by running workflow pods, and owns the /pav directories there. It acts
// only on its own node, and never provisions volumes.
package node
