package pavdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/mount"
)

// Stage is what a stage is of. As JSON it is the record in the stage's directory, which is written before
// anything is done for the stage, and by which the next agent knows it.
type Stage struct {
	// Driver and Handle name the volume as kubelet does, and VolumeName is that of the persistent volume.
	Driver     string `json:"driver"`
	Handle     string `json:"handle"`
	VolumeName string `json:"volumeName"`

	Mode      corev1.PersistentVolumeMode `json:"mode"`
	Scope     string                      `json:"scope"`
	ReadOnly  bool                        `json:"readOnly,omitempty"`
	Exclusive bool                        `json:"exclusive,omitempty"`

	// Capacity is that of the volume in bytes; 0 where it is not known.
	Capacity int64 `json:"capacity,omitempty"`

	ClaimNamespace string    `json:"claimNamespace,omitempty"`
	ClaimName      string    `json:"claimName,omitempty"`
	ClaimUID       types.UID `json:"claimUID,omitempty"`

	// Client is the pod that the stage is for; nil where it is for all of the node.
	Client *Client `json:"client,omitempty"`

	// Boot is the start of the node in which the stage was recorded last.
	Boot
}

// Client is a pod that uses a volume.
type Client struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`

	// Target is where kubelet asks for the pod's volume.
	Target string `json:"target,omitempty"`
}

// Record puts a stage on record for good, in place of what was on record of it, and makes the stage's
// directory if there is none.
func (d *Directories) Record(ctx context.Context, stage string, s Stage) error {
	return d.host.Do(ctx, func() error {
		// What is written late, Remove may have removed.
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.makeDir(d.stagePath(stage), 0o750); err != nil {
			return err
		}
		return d.keepRecord(filepath.Join(d.stagePath(stage), stageRecord), s)
	})
}

// Recorded returns what is on record of a stage, or nil: where there is no stage, or its removal was
// interrupted when nothing else was left. A record that cannot be read is an error that names the file.
func (d *Directories) Recorded(ctx context.Context, stage string) (*Stage, error) {
	return mount.In(ctx, d.host, func() (*Stage, error) {
		return readRecord[Stage](filepath.Join(d.stagePath(stage), stageRecord))
	})
}

// Stages returns the names of all stages that anything of is on the node, sorted.
func (d *Directories) Stages(ctx context.Context) ([]string, error) {
	return mount.In(ctx, d.host, func() ([]string, error) {
		entries, err := os.ReadDir(d.stages())
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing the directories of stages: %w", err)
		}
		var names []string
		for _, entry := range entries {
			if entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
		return names, nil
	})
}
