package collect

import (
	"context"

	"github.com/albertofaria/pav/internal/node/pavdir"
)

// Directories are the node's directories of pods that have a /pav of their own, by the ID of the inline volume that it
// is to kubelet. *pavdir.Directories implements it, and says more of each method. Where an ID is not one of an
// inline volume, the error is pavdir.ErrVolumeID.
type Directories interface {
	Published

	// ReadPod returns the text of a file in a pod's /pav, of at most limit bytes. Its errors are pavdir.ErrLost,
	// and those of mount.Dir.ReadText. It must be called after the end of the pod's containers.
	ReadPod(ctx context.Context, id, name string, limit int) (string, error)

	// Pod reports whether the volume has a directory, and whose it is: nil where an earlier call or agent was
	// interrupted before the pod was on record, or after it had to be.
	Pod(ctx context.Context, id string) (pod *pavdir.Pod, exists bool, err error)

	// Pods returns the IDs of the volumes that have a directory.
	Pods(ctx context.Context) ([]string, error)
}

// Published gives pods their /pav, and takes it away. All of it may be repeated, wherever it was interrupted.
type Published interface {
	// PublishPod makes a /pav of the pod's own available at target. The pod is on record before its containers
	// can write anything.
	PublishPod(ctx context.Context, id string, pod pavdir.Pod, target string) error

	// UnpublishPod takes a pod's /pav away from target, and removes its directory with all that is in it.
	UnpublishPod(ctx context.Context, id, target string) error

	// RemovePod removes a pod's directory, with all that is in it, unless its /pav is still published: then it says
	// so, and does nothing.
	RemovePod(ctx context.Context, id string) (inUse bool, err error)
}
