package config

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/albertofaria/pav/test/cluster/internal/paths"
)

// The flat network that all pods and nodes share. It exists only in namespaces, so several clusters can use the same
// addresses at the same time.
const (
	Bridge       = "cni0"
	Uplink       = "eth0"
	PodNetwork   = "10.88.0.0/16"
	PrefixLength = 16
	ServerPort   = 6443

	serviceNetwork = "10.96.0.0/16"
)

// MaxNodes is the largest number of nodes.
const MaxNodes = 3

// Sockets and directories within a node.
const (
	ContainerdSocket = "/run/containerd/containerd.sock"
	KubeletRoot      = "/var/lib/kubelet"
)

// Node is one node of a cluster.
type Node struct {
	// Index counts from 1. The first node runs the control plane.
	Index int
	// Bin is the directory of programs.
	Bin   string
	State paths.State
}

// Name returns the node's name in Kubernetes.
func (n Node) Name() string { return fmt.Sprintf("node%d", n.Index) }

// Address returns the node's address on its bridge.
func (n Node) Address() net.IP { return net.IPv4(10, 88, 0, byte(n.Index)) }

// ControlPlane reports whether the node runs the control plane.
func (n Node) ControlPlane() bool { return n.Index == 1 }

// Files returns the paths of the node's files.
func (n Node) Files() paths.Node { return n.State.Node(n.Name()) }

// ServerAddress returns the address on which clients reach the API server.
func ServerAddress() net.IP { return Node{Index: 1}.Address() }

// ServiceAddress returns the cluster IP of the service "kubernetes", which belongs to the API server.
func ServiceAddress() net.IP { return net.IPv4(10, 96, 0, 1) }

// Server returns the API server's URL.
func Server() string { return fmt.Sprintf("https://%s:%d", ServerAddress(), ServerPort) }

// podRange returns the node's part of the pod network. The addresses before the first node's part are the addresses of
// nodes.
func (n Node) podRange() (first, last net.IP) {
	return net.IPv4(10, 88, byte(n.Index*16), 1), net.IPv4(10, 88, byte(n.Index*16+15), 254)
}

func (n Node) program(name string) string { return filepath.Join(n.Bin, name) }

func (n Node) file(name string) string { return filepath.Join(n.Files().Config(), name) }

func (n Node) secret(name string) string { return filepath.Join(n.State.PKI(), name) }
