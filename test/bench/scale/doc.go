// Command scale measures PaV's agents in a large cluster: many nodes, provisioners and volumes.
//
// The API server, etcd and Kubernetes' volume controllers are real, and so is the controller agent. Nodes are objects
// without kubelets. For some of them, a process has the caches of a node agent, with the watches that node agents have; what
// all nodes cost together is calculated from these. All programs share one machine, so times are those of a busy control
// plane. Requests and bytes are counted at the clients: bytes are those of answers, after decompression.
//
// Volumes have no pods: claims are provisioned by the controller agent, and PavStages are written as node agents write them.
// The output is Markdown. The command asserts nothing. 'make bench-scale' runs it.
package main
