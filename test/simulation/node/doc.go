// Package node is one node of the simulation, in memory: kubelet's directory with PaV's in it, the mount table as far
// as the node agent's interfaces show it, the records, and what the pods of workflows leave below /pav. It stands in
// for packages pavdir and mount, and answers as they do; its tests run the same calls on both. It never touches a
// file or a mount of the machine that it runs on, starts no goroutine, and knows nothing of API servers.
//
// An agent reaches the node by what Open returns, with a Gate that decides when each call goes on, and whether its
// effect and its answer take place. Pods and their daemons are the Pod methods and Mount.Becomes. The rest are what
// happens to a node, and what can be seen on it.
//
// It is simpler than a real node:
//   - /pav has a directory tree of texts and, at /pav/volume only, mounts. There are no links and special files, and
//     mounts have nothing mounted below them. What pods do below something that covers /pav leaves no trace.
//   - A volume is a name. What clients write to it is a matter of the simulated storage; what they write where
//     nothing is mounted is not kept, so that a target can always be removed.
//   - Clients see what is uppermost at their target. A container that does not receive mounts would go on seeing what
//     was there when it was started.
//   - A call that was given up has no effect afterwards, and only Probe waits for a volume that hangs: the Gate
//     may hold up the others.
//   - Where a client was given a directory in which nothing was attached, a volume that is attached later reaches it, as
//     it really does; but that client's mounts do not keep the directory from being removed.
//   - Agents see only one mount namespace. Nobody but pods mounts anything below PaV's directory.
//   - Memory and disk never run out, and every file has reached the disk unless LoseUnsynced says otherwise. Of
//     records, all or nothing is there, unless Tear says otherwise.
//   - PaV's own directory is not removed with the last of what is in it.
package node
