// Command cluster runs real Kubernetes clusters of one to three nodes on one Linux machine, for
// PaV's end-to-end tests and for trying things out. It needs root and Go, but neither a container
// engine nor an image registry: everything is compiled from pinned Go modules.
//
// # Commands
//
//	build [--all]                     compile the programs into the cache; print their directory
//	up [--nodes N]                    bring the cluster up (compiles first if need be)
//	down                              remove it and everything that it left on the machine
//	status [-o json]                  show it; the JSON form is a stable interface
//	exec [--node NAME] [--network-only] -- COMMAND...
//	load IMAGE.tar [--node NAME]      load an image into all nodes, or one
//	image --ref NAME... --binary PATH [--entrypoint /pav] OUT.tar
//	image shell OUT.tar [NAME...]     busybox and bash, named docker.io/library/busybox:1.37.0 too
//	node stop|start|reboot NODE       a whole node, as by its power switch; its disk stays
//	node isolate|reconnect NODE       a node's network link; not that of node1
//	node COMPONENT start|stop|kill|restart NODE
//
// COMPONENT is kubelet, containerd, kube-proxy, etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler or sshd. A killed component is started again after a second, a stopped one stays stopped.
// Progress and errors go to standard error. The exit code is 0, 1 after an error, or with exec that
// of the command. All commands are idempotent, and those that change a cluster wait for each other.
//
// # Images
//
// Every node has the shell image and localhost/storage-tools:2, which is the shell image with the
// machine's bindfs, blockdev, fio, losetup, mkfs.ext3, mkfs.ext4, mkfs.xfs, mount and umount, and what these need.
//
// # Directories
//
// Programs and images are kept in $PAV_CLUSTER_CACHE (by default pav-cluster in the user's cache
// directory) under a name that changes with all that goes into them. A cluster's state lies in the
// directory that --state or $PAV_CLUSTER_STATE names, by default one per checkout in the cache. Several
// clusters can run at once. The checkout is found above the working directory or the program's file.
//
// # Nodes
//
// A node is a set of mount, network, PID, UTS, IPC and cgroup namespaces, whose first process is this
// program. It supervises the node's components, and killing it ends all that is in the node. Each
// node has its own /var/lib, /var/log, /var/tmp, /tmp, /mnt, /media and /srv, which are directories
// of its disk in the state directory, a /run that is empty after each start, cgroups, a machine ID, and
// for each start a boot ID. The rest of the file system is the machine's. The first node, node1, also
// runs the control plane; stopping it takes that away, too, until it is started again.
//
// All nodes see the directory "shared" of the cluster's state as /var/lib/shared, so that a test can have
// storage that they share. It goes with the cluster, and so do loop devices on its files.
//
// All nodes and pods share one flat network, 10.88.0.0/16, in which node N is 10.88.0.N and the API
// server https://10.88.0.1:6443. Nothing leads out of it, and no part of it is in the machine's own
// network namespace. Service addresses work; there is no DNS.
//
// Each node has an SSH server at port 22 of its address, as Kubernetes' own tests reach nodes no other
// way. It lets root in with the key that status and, to commands of exec, $PAV_CLUSTER_SSH_KEY name.
// Only its sessions have a systemctl that does start, stop, restart, is-active and show --property
// ActiveState to the node's components, and a sudo that just runs a command.
//
// With exec --network-only, a command shares nothing but node1's network, so that a test program can
// use the API and call this program at the same time. Such a command keeps the network that node1 had
// when it began, so it loses sight of the cluster when node1 is rebooted.
package main
