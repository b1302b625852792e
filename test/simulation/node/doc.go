// Package node simulates one node in memory: kubelet's directory with PaV's directory in it, the part of the mount
// table that is visible through the interfaces of the node agent, the records, and the files that workflow pods leave
// in /pav. It replaces packages pavdir and mount in the simulation, and returns the same answers. Its tests run the
// same calls on both. It never accesses a file or a mount of the machine on which it runs, starts no goroutine, and
// uses no API server.
//
// An agent accesses the node through the result of Open. Its Gate decides when each call continues, and whether the
// call has its effect and returns its result. The methods of Node whose names begin with Pod, and Mount.Becomes, are
// the actions of pods and their daemons. The other methods are the events on a node, such as a reboot, and the queries
// of its state.
//
// It is simpler than a real node:
//   - /pav has a directory tree of text files, and mounts only at /pav/volume. There are no links and no special files.
//     Nothing is mounted below another mount. If something is mounted over /pav, the actions of pods in it leave no
//     trace.
//   - A volume is only a name. The node stores no data of clients. Data in a volume belongs to the simulated storage.
//     Data that a client writes to a target without a mount is discarded, so a target can always be removed.
//   - Clients see the uppermost mount at their target. A real container that does not receive mounts would still see
//     the mount from the time of its start.
//   - If the caller gives up a call, the call has no effect after that. Only Probe waits for a volume that hangs. The
//     Gate may delay the other calls.
//   - If a client gets a bind mount of a directory while no volume is attached there, a volume that is attached later
//     appears in the bind mount, as on a real node. But the mounts of that client do not prevent the removal of the
//     directory.
//   - Agents see only one mount namespace. Apart from PaV, only pods mount anything below PaV's directory.
//   - Memory and disk never run out. Every file is on disk at once, except if LoseUnsynced removes it. A record exists
//     completely or not at all, except if Tear truncates it.
//   - PaV's own directory stays when its last entry is removed.
package node
