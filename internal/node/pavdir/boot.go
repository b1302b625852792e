package pavdir

// Boot identifies a start of a node. Mounts do not survive a restart.
type Boot struct {
	// BootID is the boot ID of the node's kernel.
	BootID string `json:"bootID"`

	// NodeStart is when process 1 of the node started. If the node is a container, as with kind, k3d and minikube, it
	// can start many times in one boot of the kernel, each time without its mounts. It is empty in records of earlier
	// versions.
	NodeStart string `json:"nodeStart,omitempty"`
}

// Same reports whether both are the same start of the node, as far as they show. A record without NodeStart may be of
// an earlier start: then the mounts must be checked.
func (b Boot) Same(other Boot) bool {
	return b.BootID == other.BootID && (b.NodeStart == "" || other.NodeStart == "" || b.NodeStart == other.NodeStart)
}
