package pavdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
)

// Names of what pods leave in /pav.
const (
	volumeName = "volume"
	readyName  = "ready"
	errorName  = "error"
)

// Names of the folders that hold those of stages and of pods.
const (
	stagesName = "stages"
	podsName   = "pods"
)

// clientName is the directory of a stage's folder where clients' binds come from.
const clientName = "client"

// maxError is the greatest size of /pav/error, in bytes.
const maxError = 4 << 10

// ErrNoVolume is wrapped where a staging pod left nothing usable at /pav/volume.
var ErrNoVolume = errors.New("the staging pod left no usable volume")

// Directories are the /pav directories of a node. The node agent is their only writer.
type Directories struct {
	host    *mount.Namespace
	kubelet string
	watcher *watcher
}

// New returns the directories below the kubelet folder, which is a path of the host's. Woken is
// called with a stage's name when its /pav/ready appears. Close ends the watching.
func New(host *mount.Namespace, kubeletDir string, woken func(stage string)) (*Directories, error) {
	w, err := newWatcher(woken)
	if err != nil {
		return nil, err
	}
	return &Directories{host: host, kubelet: kubeletDir, watcher: w}, nil
}

// Close ends the watching.
func (d *Directories) Close() error { return d.watcher.close() }

// root is where all directories of PaV live on a node.
func (d *Directories) root() string {
	return filepath.Join(d.kubelet, "plugins", pavv1.Driver)
}

// stages is where the folders of all stages are.
func (d *Directories) stages() string { return filepath.Join(d.root(), stagesName) }

func (d *Directories) ofStage(stage string) directory {
	return directory{folder: filepath.Join(d.stages(), stage)}
}

// folder is the private folder of a stage; no pod sees it.
func (d *Directories) folder(stage string) string { return d.ofStage(stage).folder }

// pav is the directory that the stage's pods see as /pav.
func (d *Directories) pav(stage string) string { return d.ofStage(stage).pav() }

// Volume is where a stage's volume is attached for clients: their pods get binds of it. It is not
// kubelet's staging path, which stays empty: kubelet takes a device for busy, and never unstages it,
// while what is mounted at the staging path is mounted anywhere else on the node, as it is in /pav.
func (d *Directories) Volume(stage string) string { return filepath.Join(d.folder(stage), clientName) }

// Prepare makes the stage's directory, if there is none.
func (d *Directories) Prepare(ctx context.Context, stage string) error {
	return d.host.Do(ctx, func() error { return d.create(d.ofStage(stage)) })
}

// Exists says whether anything of a stage is on the node.
func (d *Directories) Exists(ctx context.Context, stage string) (bool, error) {
	return mount.In(ctx, d.host, d.ofStage(stage).exists)
}

// Ready says whether the stage's pod has created /pav/ready. If not, its appearance will wake whoever waits.
func (d *Directories) Ready(ctx context.Context, stage string) (bool, error) {
	ready, err := inside(ctx, d, d.ofStage(stage), func(dir *mount.Dir) (bool, error) {
		// Before the look, so that a file that appears between the two is not missed.
		if err := d.watcher.add(stage, d.pav(stage)); err != nil {
			return false, err
		}
		return dir.Exists(readyName)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return ready, err
}

// PodError returns what the pod that began at the time wrote to /pav/error; nothing where there is no
// such file, or an earlier pod wrote it; and words about the file where it is not what it should be.
// It must be called after the pod's end.
func (d *Directories) PodError(ctx context.Context, stage string, began time.Time) string {
	text, err := inside(ctx, d, d.ofStage(stage), func(dir *mount.Dir) (string, error) {
		written, err := dir.ModTime(errorName)
		if err != nil || written.Before(began) {
			return "", err
		}
		return dir.ReadText(errorName, maxError)
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return "(/pav/error cannot be read: " + err.Error() + ")"
	default:
		return strings.TrimSpace(text)
	}
}

// Attach makes /pav/volume of the stage, which must be a directory, available to clients at
// Volume(stage), where the kernel refuses writes if readOnly is true. Where something is attached
// already, nothing is done.
func (d *Directories) Attach(ctx context.Context, stage string, readOnly bool) error {
	_, err := inside(ctx, d, d.ofStage(stage), func(dir *mount.Dir) (struct{}, error) {
		return struct{}{}, d.attach(ctx, dir, stage, readOnly)
	})
	if err == nil {
		d.watcher.remove(d.pav(stage))
	}
	return err
}

func (d *Directories) attach(ctx context.Context, dir *mount.Dir, stage string, readOnly bool) error {
	volume, err := dir.OpenVolume(volumeName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no /pav/volume", ErrNoVolume)
	case errors.Is(err, mount.ErrEscapes), errors.Is(err, mount.ErrNotVolume):
		return fmt.Errorf("%w: /pav/volume: %w", ErrNoVolume, err)
	case err != nil:
		return err
	}
	defer func() { _ = volume.Close() }()
	if volume.Mode != mount.Filesystem {
		return fmt.Errorf("%w: /pav/volume of a file system volume must be a directory", ErrNoVolume)
	}
	if err := mount.CreateDir(d.folder(stage), clientName, 0o700); err != nil {
		return err
	}
	// Opening may have hung in a dead file system. If nobody waits any more, nothing may be mounted.
	if err := ctx.Err(); err != nil {
		return err
	}
	return volume.Attach(d.Volume(stage), mount.BindOptions{ReadOnly: readOnly})
}

// Attached says whether a volume is attached for clients of the stage.
func (d *Directories) Attached(ctx context.Context, stage string) (bool, error) {
	return mount.In(ctx, d.host, func() (bool, error) { return mount.IsMountPoint(d.Volume(stage)) })
}

// Detach takes the volume away from clients of the stage.
func (d *Directories) Detach(ctx context.Context, stage string) error {
	return d.host.Do(ctx, func() error { return mount.Unmount(ctx, d.Volume(stage)) })
}

// Remove takes down whatever is still mounted below the stage's directory, and the directory.
func (d *Directories) Remove(ctx context.Context, stage string) error {
	d.watcher.remove(d.pav(stage))
	return d.host.Do(ctx, func() error { return d.ofStage(stage).remove(ctx) })
}

// RemoveRoot removes PaV's folder, where nothing is in it any more.
func (d *Directories) RemoveRoot(ctx context.Context) error {
	return d.host.Do(ctx, func() error {
		for _, dir := range []string{d.stages(), d.pods(), filepath.Join(d.root(), "csi"), d.root()} {
			err := mount.RemoveDir(dir)
			if errors.Is(err, unix.ENOTEMPTY) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
