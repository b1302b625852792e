package stage

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/node/pavdir"
)

// Directories are the node's directories of stages: what pods share as /pav, where volumes are attached for
// clients, and what the next agent must know. *pavdir.Directories implements it, and says more of each method.
// All but Volume may be repeated.
type Directories interface {
	Lifetimes
	Records
	Clients
	Attachments
	Traces
}

// Lifetimes make the directories of stages, and remove them.
type Lifetimes interface {
	// Exists reports whether anything of a stage is on the node.
	Exists(ctx context.Context, stage string) (bool, error)

	// Prepare makes the stage's directory, the /pav of its pods, if there is none.
	Prepare(ctx context.Context, stage string) error

	// Remove takes down whatever is mounted below the stage's directory, and removes it, the records last.
	Remove(ctx context.Context, stage string) error

	// Renew is Remove, but for what is on record of the stage and its targets.
	Renew(ctx context.Context, stage string) error

	// Reset is Renew, and then Prepare: the stage's directory is as if it were new.
	Reset(ctx context.Context, stage string) error
}

// Records say, without an API server, which stages a node has.
type Records interface {
	// Stages returns the names of all stages that anything of is on the node, sorted.
	Stages(ctx context.Context) ([]string, error)

	// Record puts a stage on record for good, in place of what was on record of it.
	Record(ctx context.Context, stage string, s pavdir.Stage) error

	// Given reports whether a pod was given the /pav of a stage since that was last reset, renewed or removed.
	Given(ctx context.Context, stage string) (bool, error)

	// Recorded returns what is on record of a stage, or nil. The error is pavdir.ErrTorn where that cannot be read.
	Recorded(ctx context.Context, stage string) (*pavdir.Stage, error)
}

// Clients say which pods have volumes, without an API server.
type Clients interface {
	// RecordPublication puts a target on record. It must be called before anything is mounted there, and after
	// Record. It is lost when the machine stops, as the mounts are.
	RecordPublication(ctx context.Context, stage string, p pavdir.Publication) error

	// ForgetPublication takes a target off the record. It must be called after nothing is mounted there any more.
	ForgetPublication(ctx context.Context, stage, target string) error

	// Publications returns the targets on record, sorted, those of earlier boots among them.
	Publications(ctx context.Context, stage string) ([]pavdir.Publication, error)

	// KubeletHas returns the UIDs of the pods that, by kubelet's own directories, still have the persistent volume
	// of that name, sorted.
	KubeletHas(ctx context.Context, volumeName string) ([]string, error)
}

// Attachments are the volumes that staging pods have left, where clients' binds come from.
type Attachments interface {
	// Volume is where a stage's volume is attached for clients. It only names the path.
	Volume(stage string) string

	// Attach makes /pav/volume of the stage available at Volume(stage). Where something is attached already,
	// nothing is done. What cannot be attached is pavdir.ErrNoVolume. While an earlier call, given up or not,
	// waits for the volume to answer, the error is mount.ErrHangs.
	Attach(ctx context.Context, stage string, a pavdir.Attachment) error

	// Attached reports whether a volume is attached for clients of the stage.
	Attached(ctx context.Context, stage string) (bool, error)

	// Detach takes the volume away from clients of the stage.
	Detach(ctx context.Context, stage string) error

	Origins
}

// Origins tell where what is attached for clients comes from. They touch nothing that is mounted.
type Origins interface {
	// IsPlain reports whether what is attached is a directory of /pav itself, on the node's disk.
	IsPlain(ctx context.Context, stage string) (bool, error)

	// Exchanged reports whether what is attached is not what is mounted at /pav/volume any more. A plain
	// directory of /pav is never exchanged.
	Exchanged(ctx context.Context, stage string) (bool, error)
}

// Traces are what the pods of a stage leave, and what is left of them.
type Traces interface {
	// Ready reports whether the stage's pod has created /pav/ready. If not, its appearance will wake whoever waits.
	Ready(ctx context.Context, stage string) (bool, error)

	// PodError returns what the pod that began at the time wrote to /pav/error, or nothing. It must be called
	// after the pod's end.
	PodError(ctx context.Context, stage string, began time.Time) string

	// Users returns where pods, also those that the API server has forgotten, still have the stage's /pav, sorted.
	Users(ctx context.Context, stage string) ([]string, error)

	// InUse reports whether any pod, also one that the API server has forgotten, still has the stage's /pav.
	InUse(ctx context.Context, stage string) (bool, error)

	// Runs reports whether a container of the pod runs on the node, whatever the API server and kubelet say of it.
	Runs(ctx context.Context, uid types.UID) (bool, error)
}
