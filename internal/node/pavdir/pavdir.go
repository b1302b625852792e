package pavdir

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
)

// Names of the files that pods leave in /pav.
const (
	volumeName = "volume"
	readyName  = "ready"
	errorName  = "error"

	infeasibleName = "infeasible"
)

// Names of the directories that hold those of stages and of pods.
const (
	stagesName = "stages"
	podsName   = "pods"
)

// givenName is the file in a stage's directory which says that /pav was mounted for a pod.
const givenName = "given"

// clientName is the directory in a stage's directory that the binds of clients come from.
const clientName = "client"

// maxError is the greatest size of /pav/error, in bytes.
const maxError = 4 << 10

// Directories are the /pav directories of a node. The node agent is their only writer.
type Directories struct {
	host    *mount.Namespace
	kubelet string
	woken   func(stage string)
	watcher *watcher
	syncs   *syncs

	// known has the mounts of /pav and of the volumes that are attached.
	known mount.Known
}

// New returns the directories below the kubelet directory, which is a path of the host. Woken is called with a
// stage's name when its /pav/ready is created. Close ends the watch.
func New(host *mount.Namespace, kubeletDir string, woken func(stage string)) (*Directories, error) {
	w, err := newWatcher()
	if err != nil {
		return nil, err
	}
	return &Directories{host: host, kubelet: kubeletDir, woken: woken, watcher: w, syncs: newSyncs()}, nil
}

// Close ends the watch.
func (d *Directories) Close() error { return d.watcher.close() }

// root is the directory with all directories of PaV on a node.
func (d *Directories) root() string {
	return filepath.Join(d.kubelet, "plugins", pavv1.Driver)
}

// stages is the directory with the directories of all stages.
func (d *Directories) stages() string { return filepath.Join(d.root(), stagesName) }

func (d *Directories) ofStage(stage string) directory {
	return directory{path: filepath.Join(d.stages(), stage)}
}

// stagePath is the private directory of a stage; no pod sees it.
func (d *Directories) stagePath(stage string) string { return d.ofStage(stage).path }

// pav is the directory that the stage's pods see as /pav.
func (d *Directories) pav(stage string) string { return d.ofStage(stage).pav() }

// Volume returns the path at which a stage's volume is attached for clients: their pods get binds of it. It is not
// kubelet's staging path, which stays empty: kubelet considers a device busy, and never unstages it, while the mount
// at the staging path is also mounted elsewhere on the node, as it is in /pav.
func (d *Directories) Volume(stage string) string {
	return d.ofStage(stage).client()
}

// Prepare creates the stage's directory, if it does not exist.
func (d *Directories) Prepare(ctx context.Context, stage string) error {
	return d.host.Do(ctx, func() error { return d.create(d.ofStage(stage)) })
}

// Exists reports whether the node has the directory of a stage, or a part of it.
func (d *Directories) Exists(ctx context.Context, stage string) (bool, error) {
	return mount.In(ctx, d.host, d.ofStage(stage).exists)
}

// Ready reports whether the stage's pod has created /pav/ready. If it has not, its creation calls Woken.
func (d *Directories) Ready(ctx context.Context, stage string) (bool, error) {
	ready, err := inside(ctx, d, d.ofStage(stage), func(dir *mount.Dir) (bool, error) {
		return d.isReady(dir, d.pav(stage), func() { d.woken(stage) })
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return ready, err
}

// isReady reports whether /pav/ready exists. The watch begins before the check, so that a file that is created between
// the two is not missed.
func (d *Directories) isReady(dir *mount.Dir, path string, woken func()) (bool, error) {
	if err := d.watcher.add(path, woken); err != nil {
		return false, err
	}
	return dir.Exists(readyName)
}

// PodError returns the text that the pod which started at the time wrote to /pav/error: "" if there is no such file,
// or an earlier pod wrote it, and a text about the file if it cannot be read. It must be called after the pod has
// ended.
func (d *Directories) PodError(ctx context.Context, stage string, began time.Time) string {
	text, _ := d.podText(ctx, stage, errorName, began)
	return text
}

// Infeasible returns the text that the pod which started at the time wrote to /pav/infeasible, as PodError does, and whether
// it did.
func (d *Directories) Infeasible(ctx context.Context, stage string, began time.Time) (text string, found bool) {
	return d.podText(ctx, stage, infeasibleName, began)
}

// podText returns the text in a file of /pav that a pod has written since it began, and whether it did.
func (d *Directories) podText(ctx context.Context, stage, name string, began time.Time) (text string, found bool) {
	text, err := inside(ctx, d, d.ofStage(stage), func(dir *mount.Dir) (string, error) {
		written, err := dir.ModTime(name)
		if err == nil && written.Before(began) {
			err = fs.ErrNotExist // An earlier pod wrote it.
		}
		if err != nil {
			return "", err
		}
		return dir.ReadText(name, maxError)
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false
	case err != nil:
		return "(/pav/" + name + " cannot be read: " + err.Error() + ")", true
	default:
		return strings.TrimSpace(text), true
	}
}

// RemoveRoot removes PaV's directory if it is empty.
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
