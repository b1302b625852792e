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

// Stage describes a stage. As JSON it is the record in the stage's directory, which is written before anything else
// is done for the stage, and from which the next agent knows the stage.
type Stage struct {
	// Driver and Handle identify the volume as kubelet does, and VolumeName is the name of the PersistentVolume.
	Driver     string `json:"driver"`
	Handle     string `json:"handle"`
	VolumeName string `json:"volumeName"`

	Mode      corev1.PersistentVolumeMode `json:"mode"`
	Scope     string                      `json:"scope"`
	ReadOnly  bool                        `json:"readOnly,omitempty"`
	Exclusive bool                        `json:"exclusive,omitempty"`

	// Capacity is the volume's capacity in bytes; 0 if it is not known.
	Capacity int64 `json:"capacity,omitempty"`

	ClaimNamespace string    `json:"claimNamespace,omitempty"`
	ClaimName      string    `json:"claimName,omitempty"`
	ClaimUID       types.UID `json:"claimUID,omitempty"`

	// Client is the pod that the stage is for; nil if it is for all pods of the node.
	Client *Client `json:"client,omitempty"`

	// Restaging says that the volume is being restaged: the attached volume may not be the right one yet, so no further
	// client may get it.
	Restaging bool `json:"restaging,omitempty"`

	// Boot is the start of the node in which the stage was last recorded.
	Boot
}

// Client is a pod that uses a volume.
type Client struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`

	// Target is the path at which kubelet requests the pod's volume.
	Target string `json:"target,omitempty"`
}

// Record writes the record of a stage to disk, replaces an earlier one, and creates the stage's directory if it does
// not exist.
func (d *Directories) Record(ctx context.Context, stage string, s Stage) error {
	return d.host.Do(ctx, func() error {
		// The caller does not wait any more, and Remove may have been called since.
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.makeDir(d.stagePath(stage), 0o750); err != nil {
			return err
		}
		return d.keepRecord(filepath.Join(d.stagePath(stage), stageRecord), s)
	})
}

// Recorded returns the record of a stage, or nil if there is no stage, or its removal was interrupted after the
// record was removed. The error for a damaged record has the name of the file.
func (d *Directories) Recorded(ctx context.Context, stage string) (*Stage, error) {
	return mount.In(ctx, d.host, func() (*Stage, error) {
		return readRecord[Stage](filepath.Join(d.stagePath(stage), stageRecord))
	})
}

// Stages returns the names of all stages for which Exists reports true, sorted.
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
