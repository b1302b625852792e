package paths

import "path/filepath"

// State names the files of one cluster.
type State struct {
	// Directory is the absolute path of the state directory.
	Directory string
}

// ID is a short name of the cluster that is unique on the machine, for what cannot lie in the
// state directory: cgroup directories and locks.
func (s State) ID() string { return digest(s.Directory) }

// Record is the file that says what was started.
func (s State) Record() string { return filepath.Join(s.Directory, "cluster.json") }

// PKI is the directory of keys and certificates.
func (s State) PKI() string { return filepath.Join(s.Directory, "pki") }

// Shared is the directory that all nodes see.
func (s State) Shared() string { return filepath.Join(s.Directory, "shared") }

// AdminKubeconfig is for anyone who uses the cluster.
func (s State) AdminKubeconfig() string { return filepath.Join(s.Directory, "admin.kubeconfig") }

// Kubeconfig is the one of a component such as "kubelet-node1".
func (s State) Kubeconfig(user string) string {
	return filepath.Join(s.PKI(), user+".kubeconfig")
}

// Node names the files of one node.
func (s State) Node(name string) Node {
	return Node{Directory: filepath.Join(s.Directory, "nodes", name), Name: name}
}

// Node names the files of one node of a cluster.
type Node struct {
	Directory string
	Name      string
}

// Disk is what survives a reboot: the directories that the node sees as /var/lib, /tmp and so on.
func (n Node) Disk() string { return filepath.Join(n.Directory, "disk") }

// Config is the directory of generated configuration files.
func (n Node) Config() string { return filepath.Join(n.Directory, "config") }

// Log is the log file of a component.
func (n Node) Log(component string) string {
	return filepath.Join(n.Directory, "log", component+".log")
}

// Identity is the file that tells the node's first process from any other process.
func (n Node) Identity() string { return filepath.Join(n.Directory, "init.json") }
