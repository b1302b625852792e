// Command cluster runs real Kubernetes clusters of one to three nodes on one Linux machine, for PaV's end-to-end tests
// and for experiments. It needs root and Go. It needs no container engine and no image registry, because it compiles
// everything from pinned Go modules.
//
// # Commands
//
//	build [--all]                     compile the programs into the cache and print their directory
//	up [--nodes N]                    start the cluster (compiles the programs first if necessary)
//	down                              remove the cluster and everything that it left on the machine
//	status [-o json]                  show its state; the JSON form is a stable interface
//	exec [--node NAME] [--network-only] -- COMMAND...
//	load IMAGE.tar [--node NAME]      load an image into all nodes or into one
//	image --ref NAME... --binary PATH --entrypoint PATH OUT.tar
//	image shell OUT.tar [NAME...]     busybox and bash; always also named docker.io/library/busybox:1.37.0
//	node stop|start|reboot NODE       a whole node, as with its power switch; its disk stays
//	node shutdown NODE                power a node off through logind, so that kubelet ends the pods first
//	node isolate|reconnect NODE       disconnect or connect a node's network link; not for node1
//	node COMPONENT start|stop|kill|restart NODE
//
// COMPONENT is kubelet, containerd, kube-proxy, etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
// snapshot-controller, sshd or logind. A killed component is started again after one second. A stopped component stays
// stopped, and logind is stopped until it is started. Progress and errors go to standard error. The exit code is 0, or 1
// after an error. The exit code of exec is that of the command. All commands are idempotent. Commands that change a
// cluster wait for each other.
//
// # Versions
//
// $PAV_KUBERNETES selects another version of Kubernetes for the commands build and up: one of compile.Versions. The
// other programs, of which etcd and containerd are the largest, are the same for all versions.
//
// # Snapshots
//
// Every cluster has Kubernetes' snapshot add-on: the CRDs VolumeSnapshotClass, VolumeSnapshot and VolumeSnapshotContent,
// and the snapshot controller. It has no CRDs of group snapshots, and no sidecars of drivers. The CRDs are in the
// directory snapshot-crds beside the programs, so that tests without a cluster can install them, too.
//
// # Images
//
// Every node has the shell image and localhost/storage-tools:4. The latter is the shell image plus the machine's
// bindfs, blockdev, cp, e2fsck, fio, losetup, mkfs.ext3, mkfs.ext4, mkfs.xfs, mount, resize2fs, umount and xfs_growfs,
// and the libraries of these programs.
//
// # Directories
//
// Programs and images are kept in $PAV_CLUSTER_CACHE (by default pav-cluster in the user's cache directory) under a
// name that changes with everything that determines their content. A cluster's state is in the directory given by
// --state or $PAV_CLUSTER_STATE. By default, the cache has one state directory for each checkout. Several clusters can
// run at the same time. The program searches for the checkout in the working directory and its parents, and then in the
// directory of its own executable and its parents.
//
// # Nodes
//
// A node is a set of mount, network, PID, UTS, IPC and cgroup namespaces. Its first process is this program, which
// supervises the node's components. If that process is killed, all processes of the node end. Each node has its own
// /var/lib, /var/log, /var/tmp, /tmp, /mnt, /media and /srv, which are directories of its disk in the state directory.
// It also has its own cgroups, its own machine ID, a /run that is empty after each start, and a new boot ID for each
// start (except that node restart keeps the boot ID). The rest of the file system is the machine's. The first node,
// node1, also runs the control plane. If node1 is stopped, there is no control plane until node1 is started again.
//
// All nodes see the directory "shared" of the cluster's state as /var/lib/shared, so that a test can use storage that
// all nodes share. The directory, and the loop devices on its files, are removed together with the cluster.
//
// All nodes and pods share one flat network, 10.88.0.0/16, in which node N has the address 10.88.0.N and the API server
// has the URL https://10.88.0.1:6443. The network has no connection to any other network, and no part of it is in the
// machine's own network namespace. Service addresses work. There is no DNS.
//
// Each node has an SSH server at port 22 of its address, because Kubernetes' own tests can access nodes only with SSH.
// The server accepts the user root with one key. The command status prints the path of the key, and commands run by
// exec find it in $PAV_CLUSTER_SSH_KEY. Only SSH sessions have a systemctl and a sudo of this program. The systemctl
// knows start, stop, restart, is-active and show --property ActiveState, and applies them to the node's components. The
// sudo just runs a command.
//
// With exec --network-only, a command shares only the network of node1 with the cluster, so that a test program can use
// the API and call this program as well. The command keeps the network that node1 had at the command's start. It
// therefore cannot reach the cluster any more after a reboot of node1.
package main
