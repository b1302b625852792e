package collect

import (
	"context"

	"github.com/albertofaria/pav/internal/node/pavdir"
)

// Directories are the node's directories of pods that have a /pav of their own, by the ID of the inline volume.
// *pavdir.Directories implements it, and describes each method in detail. The error is pavdir.ErrVolumeID if an ID is
// not that of an inline volume.
type Directories interface {
	Published
	Files

	// Pod reports whether the volume has a directory, and of which pod: nil if an earlier call or agent was
	// interrupted before it wrote the record, or after it removed it.
	Pod(ctx context.Context, id string) (pod *pavdir.Pod, exists bool, err error)

	// Pods returns the IDs of the volumes that have a directory.
	Pods(ctx context.Context) ([]string, error)
}

// Files reads what pods left in their /pav. It must be called after the pod's containers have ended, or the pod is ready.
type Files interface {
	// PodReady reports whether a pod has created /pav/ready. If it has not, its creation calls woken, which must not
	// block. Its errors are fs.ErrNotExist and pavdir.ErrLost. It may be called at any time.
	PodReady(ctx context.Context, id string, woken func()) (bool, error)

	// ReadPod returns the text of a file in a pod's /pav, of at most limit bytes. Its errors are pavdir.ErrLost, and
	// those of mount.Dir.ReadText.
	ReadPod(ctx context.Context, id, name string, limit int) (string, error)

	// ReadPodFiles returns the files in a directory of a pod's /pav, at most most of at most limit bytes each.
	ReadPodFiles(ctx context.Context, id, directory string, most, limit int) ([]pavdir.File, error)
}

// Published gives pods their /pav, and removes it. All methods may be repeated after an interruption at any point.
type Published interface {
	// PublishPod mounts a /pav for the pod at target. The pod is recorded before its containers can write anything.
	PublishPod(ctx context.Context, id string, pod pavdir.Pod, target string) error

	// UnpublishPod unmounts a pod's /pav from target, and removes its directory with its content.
	UnpublishPod(ctx context.Context, id, target string) error

	// RemovePod removes a pod's directory with its content. If its /pav is still published, it does nothing and
	// reports that.
	RemovePod(ctx context.Context, id string) (inUse bool, err error)
}
