package paths

import "path/filepath"

// State has the paths of one cluster's files.
type State struct {
	// Directory is the absolute path of the state directory.
	Directory string
}

// ID returns a short name of the cluster that is unique on the machine. It is used for names outside the state
// directory: cgroup directories and locks.
func (s State) ID() string { return digest(s.Directory) }

// Record returns the path of the file that records which cluster was started.
func (s State) Record() string { return filepath.Join(s.Directory, "cluster.json") }

// PKI returns the directory of keys and certificates.
func (s State) PKI() string { return filepath.Join(s.Directory, "pki") }

// Shared returns the directory that all nodes share.
func (s State) Shared() string { return filepath.Join(s.Directory, "shared") }

// AdminKubeconfig returns the path of the kubeconfig for users of the cluster.
func (s State) AdminKubeconfig() string { return filepath.Join(s.Directory, "admin.kubeconfig") }

// Kubeconfig returns the path of a component's kubeconfig. An example of a user is "kubelet-node1".
func (s State) Kubeconfig(user string) string {
	return filepath.Join(s.PKI(), user+".kubeconfig")
}

// Node names the files of one node.
func (s State) Node(name string) Node {
	return Node{Directory: filepath.Join(s.Directory, "nodes", name), Name: name}
}

// Node has the paths of the files of one node.
type Node struct {
	Directory string
	Name      string
}

// Disk returns the directory with the files that survive a reboot. The node sees its subdirectories as /var/lib, /tmp
// and so on.
func (n Node) Disk() string { return filepath.Join(n.Directory, "disk") }

// Config returns the directory of generated configuration files.
func (n Node) Config() string { return filepath.Join(n.Directory, "config") }

// Log returns the path of a component's log file.
func (n Node) Log(component string) string {
	return filepath.Join(n.Directory, "log", component+".log")
}

// Identity returns the path of the file with the identity of the node's first process.
func (n Node) Identity() string { return filepath.Join(n.Directory, "init.json") }
