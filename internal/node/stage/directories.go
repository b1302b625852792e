package stage

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/node/pavdir"
)

// Directories are the directories of stages on the node: /pav of pods, the volumes that are attached for clients, and
// the
// records for the next agent. *pavdir.Directories implements it, and describes each method in detail. All methods may
// be
// repeated.
type Directories interface {
	Lifetimes
	Records
	Clients
	Attachments
	Traces
}

// Lifetimes creates and removes the directories of stages.
type Lifetimes interface {
	// Exists reports whether the node has the directory of a stage, or a part of it.
	Exists(ctx context.Context, stage string) (bool, error)

	// Prepare creates the stage's directory, with the /pav of its pods, if it does not exist.
	Prepare(ctx context.Context, stage string) error

	// Remove unmounts everything below the stage's directory, and removes the directory, the records last.
	Remove(ctx context.Context, stage string) error

	// Renew is Remove, but keeps the records of the stage and its targets.
	Renew(ctx context.Context, stage string) error

	// Reset is Renew, then Prepare: the stage's directory is as new.
	Reset(ctx context.Context, stage string) error
}

// Records has the stages of the node, without an API server.
type Records interface {
	// Stages returns the names of all stages for which Exists reports true, sorted.
	Stages(ctx context.Context) ([]string, error)

	// Record writes the record of a stage to disk, and replaces an earlier one.
	Record(ctx context.Context, stage string, s pavdir.Stage) error

	// Given reports whether the /pav of a stage was mounted for a pod since it was last reset, renewed or removed.
	Given(ctx context.Context, stage string) (bool, error)

	// Recorded returns the record of a stage, or nil. The error is pavdir.ErrTorn if it cannot be read.
	Recorded(ctx context.Context, stage string) (*pavdir.Stage, error)
}

// Clients has the pods that have volumes, without an API server.
type Clients interface {
	// RecordPublication records a target. It must be called after Record, and before anything is mounted at the
	// target. The record is lost when the machine stops, as the mounts are.
	RecordPublication(ctx context.Context, stage string, p pavdir.Publication) error

	// ForgetPublication removes the record of a target. It must be called when nothing is mounted there any more.
	ForgetPublication(ctx context.Context, stage, target string) error

	// Publications returns the recorded targets, sorted, including those of earlier boots.
	Publications(ctx context.Context, stage string) ([]pavdir.Publication, error)

	// KubeletHas returns the UIDs of the pods that have the PersistentVolume of that name according to kubelet's
	// directories, sorted.
	KubeletHas(ctx context.Context, volumeName string) ([]string, error)
}

// Attachments has the volumes of staging pods from which client pods get theirs.
type Attachments interface {
	// Volume returns the path at which a stage's volume is attached for clients.
	Volume(stage string) string

	// Attach makes /pav/volume of the stage available at Volume(stage). It does nothing if something is already
	// attached. The error is pavdir.ErrNoVolume if there is no volume that could be attached, and mount.ErrHangs
	// while an earlier call, even one that was given up, waits for the volume to answer.
	Attach(ctx context.Context, stage string, a pavdir.Attachment) error

	// Attached reports whether a volume is attached for clients of the stage.
	Attached(ctx context.Context, stage string) (bool, error)

	Detachments
	Origins
}

// Detachments write attached volumes back, and unmount them.
type Detachments interface {
	// Sync writes to the storage what the node has in memory of the attached volume. It returns when ctx ends, even if the
	// volume hangs.
	Sync(ctx context.Context, stage string) error

	// Detach unmounts the volume at Volume(stage).
	Detach(ctx context.Context, stage string) error
}

// Origins reports where the attached volume comes from. It does no I/O on the volume.
type Origins interface {
	// IsPlain reports whether the attached volume is a directory of /pav itself, on the node's disk.
	IsPlain(ctx context.Context, stage string) (bool, error)

	// Exchanged reports whether another volume is mounted at /pav/volume than the attached one. It is false for a
	// directory of /pav itself.
	Exchanged(ctx context.Context, stage string) (bool, error)
}

// Traces has the files that the pods of a stage leave, and the mounts and containers that are left of them.
type Traces interface {
	Files

	// Users returns the paths at which pods, even those that the API server does not have any more, still have the
	// stage's /pav, sorted.
	Users(ctx context.Context, stage string) ([]string, error)

	// InUse reports whether a pod, even one that the API server does not have any more, still has the stage's /pav.
	InUse(ctx context.Context, stage string) (bool, error)

	// Runs reports whether a container of the pod runs on the node, regardless of the API server and kubelet.
	Runs(ctx context.Context, uid types.UID) (bool, error)
}

// Files are the files in the /pav of a stage by which its pods say something.
type Files interface {
	// Ready reports whether the stage's pod has created /pav/ready. If it has not, its creation wakes the calls that
	// wait.
	Ready(ctx context.Context, stage string) (bool, error)

	// PodError returns the text that the pod which started at the time wrote to /pav/error, or "". It must be called
	// after the pod has ended.
	PodError(ctx context.Context, stage string, began time.Time) string

	// Infeasible returns the text that the pod which started at the time wrote to /pav/infeasible, and whether it did. It must be
	// called after the pod has ended.
	Infeasible(ctx context.Context, stage string, began time.Time) (text string, found bool)
}
