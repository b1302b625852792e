package pavdir

// Boot tells the starts of a node apart: mounts do not outlive one.
type Boot struct {
	// BootID is that of the node's kernel.
	BootID string `json:"bootID"`

	// NodeStart is when process 1 of the node started. A node that is a container, as those of kind, k3d and
	// minikube are, starts many times in one boot of the kernel, and each time without its mounts. It is empty
	// in records of earlier versions, which knew boots of kernels only.
	NodeStart string `json:"nodeStart,omitempty"`
}

// Same reports whether both are the same start of the node, as far as they tell. What was recorded without
// NodeStart may be of an earlier start: then the mounts have to tell.
func (b Boot) Same(other Boot) bool {
	return b.BootID == other.BootID && (b.NodeStart == "" || other.NodeStart == "" || b.NodeStart == other.NodeStart)
}
