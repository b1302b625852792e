// Package integration tests both agents against a real kube-apiserver, etcd and kube-controller-manager,
// under the rights that the agents have in a cluster. No containers run.
//
// For the tests of the controller agent, there are no nodes: what a node agent or a scheduler would write,
// the tests write. Those of the node agent, in the files and with the names that begin with node, have a
// kubelet by hand (package kubelet) for an agent in a process of its own, and real mounts in a mount
// namespace of the tests' own, so that they need root. They speak CSI to the agent's sockets and Kubernetes
// to the API server, and know nothing else of it. Each ends by checking that nothing is left, neither on
// the node nor in the API server, and that the agent ends without a goroutine too many:
//
//   - a volume's life, for every mode and scope, with every call repeated;
//   - the agent killed after each of its effects: its writes to the API server and its changes to the mount table;
//   - random legal sequences of the four calls against a model of what must be true after each;
//   - csi-test's sanity suite, with the specs that are skipped in testdata/sanity-skipped.txt;
//   - a line to the API server that fails, refuses, or is late; the API server away; a staging pod that never
//     becomes ready.
//
// The controller agent's line is as bad, its leader stalls for longer than its lease, and it is away while pods go.
// A test of a fault says how often it struck, and fails where it never did.
//
// With PAV_LONG=1, agents are ended after all of their effects and not some by chance, and the sequences
// are 10,000. PAV_SEED chooses the same again, and PAV_SEQUENCE makes one sequence.
package integration
