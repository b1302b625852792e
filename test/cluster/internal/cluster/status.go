package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/control"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// Status is the output of the command status. Tests depend on its form.
type Status struct {
	// Phase is "running", "starting" (also after a crash while starting) or "none".
	Phase string `json:"phase"`
	State string `json:"state"`
	// Kubernetes is the version of Kubernetes.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	// SSHKey is the path of the private key for SSH connections as root to port 22 of all nodes.
	SSHKey string `json:"sshKey"`
	// Shared is the directory that all nodes see as /var/lib/shared.
	Shared string       `json:"shared"`
	Bin    string       `json:"bin,omitempty"`
	Nodes  []NodeStatus `json:"nodes"`
}

// NodeStatus is the status of one node.
type NodeStatus struct {
	Name         string `json:"name"`
	Address      string `json:"address"`
	ControlPlane bool   `json:"controlPlane"`
	Running      bool   `json:"running"`
	// PID is the process ID of the node's first process on the machine.
	PID      int    `json:"pid,omitempty"`
	BootID   string `json:"bootID,omitempty"`
	Isolated bool   `json:"isolated"`
	// Disk is the directory with the node's own /var/lib (in its subdirectory var-lib), /tmp and so on.
	Disk string `json:"disk"`
	// Logs is the directory of the log files: one for each component, and init.log for the first process.
	Logs       string            `json:"logs"`
	Components []ComponentStatus `json:"components"`
}

// ComponentStatus is the status of a program on a node.
type ComponentStatus struct {
	control.State
	// HostPID is the process ID on the machine.
	HostPID int `json:"hostPID,omitempty"`
}

// Status returns the status of the cluster. It returns no error if there is no cluster.
func (c Cluster) Status(ctx context.Context) (Status, error) {
	status := Status{
		Phase: "none", State: c.State.Directory, Kubeconfig: c.State.AdminKubeconfig(),
		Server: config.Server(), SSHKey: c.sshKey(), Shared: c.State.Shared(), Nodes: []NodeStatus{},
	}
	r, err := c.load()
	if errors.Is(err, ErrNone) {
		return status, nil
	}
	if err != nil {
		return status, err
	}
	status.Phase, status.Kubernetes, status.Bin = string(r.Phase), r.Kubernetes, r.Bin
	nodes := c.nodes(r)
	controlPlane, controlError := identity(nodes[0])
	for _, node := range nodes {
		described := describe(ctx, node)
		if described.Running && !node.ControlPlane() {
			described.Isolated = controlError != nil || isolated(controlPlane, node)
		}
		status.Nodes = append(status.Nodes, described)
	}
	return status, nil
}

func describe(ctx context.Context, node config.Node) NodeStatus {
	status := NodeStatus{
		Name: node.Name(), Address: node.Address().String(), ControlPlane: node.ControlPlane(),
		Disk: node.Files().Disk(), Logs: filepath.Dir(node.Files().Log("init")), Components: []ComponentStatus{},
	}
	first, err := identity(node)
	if err != nil {
		return status
	}
	status.Running, status.PID = true, first.PID
	// The node may be about to start or end, so errors are ignored and the values stay empty.
	status.BootID, _ = bootID(node)
	outside := process.Outside(first.PID)
	states, _ := control.Call(ctx, first.PID, control.Request{Operation: control.Status})
	for _, state := range states {
		status.Components = append(status.Components, ComponentStatus{State: state, HostPID: outside[state.PID]})
	}
	return status
}

// suspicious returns the components of a node whose logs are likely to show what is wrong.
func suspicious(ctx context.Context, first process.Identity, node config.Node) []string {
	states, err := control.Call(ctx, first.PID, control.Request{Operation: control.Status})
	if err != nil {
		return []string{"init"}
	}
	var names []string
	for _, state := range states {
		if !state.Running || state.LastExit != "" {
			names = append(names, state.Name)
		}
	}
	if len(names) > 0 {
		return names
	}
	if node.ControlPlane() {
		return []string{config.APIServer, config.Containerd, config.Kubelet}
	}
	return []string{config.Containerd, config.Kubelet}
}

// tail returns the last lines of a file, or an empty string if the file cannot be read.
func tail(path string, count int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
