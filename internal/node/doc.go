// Package node is the node agent: it registers a CSI driver with its kubelet for every PavProvisioner,
// stages and publishes volumes for the pods of its node by running workflow pods, and owns every /pav
// directory there. It acts on its own node only, and provisions nothing.
package node
