// Package mount does the node agent's work on mounts and on directories that
// pods write to: it binds volumes, takes mount trees out of and into peer
// groups, unmounts, asks mounts whether they still answer and how full they are,
// has them write to their storage what is in memory, reads result files and deletes
// trees. Linux 5.12 or newer only; Supported says whether the running kernel will do.
//
// # Which thread
//
// The agent lives in a container, but what it mounts must appear in the mount
// namespace of the host. Namespace.Do runs a function on an OS thread of its
// own that has entered such a namespace. Every function of this package that
// takes a path, and Volume.Attach, acts on the mount namespace of the thread
// that calls it, so they belong inside the function given to Do. Three rules
// follow:
//
//   - Open a Dir and its Volume inside Do as well. The kernel refuses to clone a
//     mount that belongs to another namespace than the thread's.
//   - Do not start goroutines in that function and expect them to be in the
//     namespace. They are not.
//   - A Dir or Volume keeps the mount that it was opened on busy. Close them
//     before Unmount, or it has to detach what it could have unmounted.
//
// Mount tables are read from /proc/thread-self, for /proc/self is the main
// thread, which is in another namespace. That link works only where /proc shows
// the PID namespace of the process. Within Do, /proc is the one of the namespace
// entered, so the agent needs the host's PID namespace (hostPID).
//
// # When the mount table is read
//
// Reading the mount table takes time for each mount of the node, also for those of
// others: with 2,000 of them about 10 ms. So other sources are asked first:
//
//   - IsMountPoint looks the path up, and the look-up stops before it enters a mount.
//   - The mount that a file is on is described by the kernel (statmount, Linux 6.8).
//   - Known remembers mounts by path. Each time it asks the kernel whether that
//     mount is still the lowest and the uppermost one there.
//
// The table decides where mounts are stacked or hidden, where other paths matter,
// where a directory is itself the root of a mount, and on older kernels. Both ways
// give the same answer. What is remembered is the unique ID of a mount (statx,
// Linux 6.8), as the kernel gives the IDs of the table to other mounts later.
//
// # Whom it trusts
//
// Absolute paths that are given to this package name directories of the kubelet
// and of the agent; no pod can rename their components, and symbolic links in
// them (a kubelet directory moved to another disk) are followed, except in the
// last component. Names below a Dir, below the root of CreateDir or CreateFile
// and anything inside a tree to be unmounted or removed are under the control of
// pods: they are resolved by descriptor, never by string, and never out of the
// directory.
//
// # What may hang
//
// A mount whose server is silent hangs anyone who asks it something. Probe, UsageOf,
// Sync and Volume.Device do ask, and so does whatever works below a directory that
// something is mounted over: they are given up with the context of Do, and cost a
// thread until the kernel lets go. Unmount gives up by itself. Opening, binding
// and covering look only at what the kernel has in memory; but where that is a
// link, or of some network file systems the root of a mount, the kernel asks for
// itself. So run them by Namespace.DoMount, which never has two threads hang for
// one path.
//
// # Propagation
//
//   - SelfBind gives a directory a mount, and so a peer group, of its own.
//   - BindShared makes a copy that stays in the group of its source: what a pod
//     mounts below the copy arrives at the source.
//   - Separate takes the source out of that group again. Then Unmount of a copy
//     lets the copies of the copy in other namespaces vanish too, and takes
//     nothing from the source. What is still bound to the group loses both, so
//     separate a source only when the copy to be unmounted is its last one;
//     Mount.PeerGroup tells.
//   - Volume.Attach makes a tree that has left all groups behind.
//   - Bind makes a copy that follows its source and never acts on it. Cover lays
//     such a copy over another mount, for users who cannot be stopped.
//
// The package never formats, never mounts a file system by type, never talks to
// Kubernetes, never logs, never sleeps and never deletes across a mount.
package mount
