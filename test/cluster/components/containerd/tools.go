//go:build tools

// Package containerd pins the versions of the container runtime and of the CNI plugins, as tool dependencies. It is a
// separate module because containerd 2.4 needs a newer cri-api than Kubernetes 1.36.
package containerd

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
	_ "github.com/containernetworking/plugins/plugins/ipam/host-local"
	_ "github.com/containernetworking/plugins/plugins/main/bridge"
	_ "github.com/opencontainers/runc"
)
