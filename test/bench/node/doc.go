// Command node measures what PaV costs on a node of a real cluster: the data path, how long client pods
// wait for a volume, and the node agent's memory, file descriptors and entries in the API. Each figure
// stands beside a floor of the same run: the same I/O, or the same pod, without PaV, or an agent without
// provisioners. test/bench/node/run ('make bench-node') boots a cluster and runs it in its network. All
// that it makes goes when it ends; it asserts nothing.
package main
