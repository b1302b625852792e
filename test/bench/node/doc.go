// Command node measures what PaV costs on a node of a real cluster: the data path, the time that client pods wait for a
// volume, and the memory, the file descriptors and the API entries of the node agent. Each figure is compared with a
// baseline of the same run: the same I/O or the same pod without PaV, or an agent without provisioners.
// test/bench/node/run ('make bench-node') boots a cluster and runs the command in its network. The command removes
// everything that it has created when it ends. It asserts nothing.
package main
