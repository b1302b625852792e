package pavdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/mount"
)

// ErrVolumeID is wrapped if the ID of a volume does not have the form of kubelet's IDs of inline volumes. Only IDs of
// that form become paths.
var ErrVolumeID = errors.New("the volume ID is not one of an inline volume")

// volumeID is the form of kubelet's IDs of inline volumes: a hash of the pod's UID and the volume's name.
var volumeID = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)

// Pod identifies the pod that has a directory of its own. As JSON it is the record in that directory, from which the
// next agent knows the pod.
type Pod struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`

	// Credentials says that the pod has /pav/credentials.
	Credentials bool `json:"credentials,omitempty"`

	// Boot is the start of the node in which the pod last got its directory: what it wrote before that may not have
	// reached the disk.
	Boot
}

// recordedPod returns the recorded pod, or nil.
func (p directory) recordedPod() (*Pod, error) {
	return readRecord[Pod](filepath.Join(p.path, podRecord))
}

// recordPod writes the record of the pod to disk, unless another pod is recorded.
func (d *Directories) recordPod(of directory, pod Pod) error {
	found, err := of.recordedPod()
	if err != nil {
		return err
	}
	if found != nil && (found.Namespace != pod.Namespace || found.Name != pod.Name || found.UID != pod.UID) {
		return fmt.Errorf("the directory of pod %s/%s is that of pod %s/%s", pod.Namespace, pod.Name, found.Namespace, found.Name)
	}
	return d.keepRecord(filepath.Join(of.path, podRecord), pod)
}

// pods is the directory with the directories of single pods.
func (d *Directories) pods() string { return filepath.Join(d.root(), podsName) }

func (d *Directories) ofPod(id string) (directory, error) {
	if !volumeID.MatchString(id) {
		return directory{}, fmt.Errorf("%w: %.100q", ErrVolumeID, id)
	}
	return directory{path: filepath.Join(d.pods(), id)}, nil
}

// PublishPod makes the pod's own directory available at target, and creates it if the volume of that ID has none. The
// pod is recorded before its containers can write anything. It may be repeated.
func (d *Directories) PublishPod(ctx context.Context, id string, pod Pod, target string) error {
	of, err := d.ofPod(id)
	if err != nil {
		return err
	}
	of.secret = pod.Credentials
	return d.host.Do(ctx, func() error {
		// The result of a call that was given up would not be removed.
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := d.makeDir(of.path, 0o750); err != nil {
			return err
		}
		if err := d.recordPod(of, pod); err != nil {
			return err
		}
		return d.publish(ctx, of, target, false)
	})
}

// Pod reports whether the volume has the directory of a single pod, and which pod that is: nil if an earlier call or
// agent was interrupted before it wrote the record, or after it removed it.
func (d *Directories) Pod(ctx context.Context, id string) (pod *Pod, exists bool, err error) {
	of, err := d.ofPod(id)
	if err != nil {
		return nil, false, err
	}
	exists, err = mount.In(ctx, d.host, of.exists)
	if err != nil || !exists {
		return nil, false, err
	}
	pod, err = mount.In(ctx, d.host, of.recordedPod)
	return pod, true, err
}

// Begun reports whether the node has the target, or a part of the directory of a single pod for the volume of that
// ID: an earlier call or agent may have been interrupted while it created them. Kubelet creates the parent directory
// of the target, not the target.
func (d *Directories) Begun(ctx context.Context, id, target string) (bool, error) {
	of, invalid := d.ofPod(id)
	return mount.In(ctx, d.host, func() (bool, error) {
		if invalid == nil {
			if exists, err := of.exists(); err != nil || exists {
				return exists, err
			}
		}
		if mounted, err := mount.IsMountPoint(target); err != nil || mounted {
			return mounted, err
		}
		_, err := os.Lstat(target)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	})
}

// PodReady reports whether a pod has created /pav/ready in its own directory. If it has not, its creation calls woken,
// which must not block. If the volume has no directory, the error is fs.ErrNotExist.
func (d *Directories) PodReady(ctx context.Context, id string, woken func()) (bool, error) {
	return insidePod(ctx, d, id, func(of directory, dir *mount.Dir) (bool, error) { return d.isReady(dir, of.pav(), woken) })
}

// ErrLost is wrapped if the files that a pod left in its own directory are lost.
var ErrLost = errors.New("/pav is not mounted on the node any more")

// insidePod runs a function on a pod's own directory, held by descriptor, in the host's mount namespace.
func insidePod[T any](ctx context.Context, d *Directories, id string, f func(directory, *mount.Dir) (T, error)) (T, error) {
	var none T
	of, err := d.ofPod(id)
	if err != nil {
		return none, err
	}
	return inside(ctx, d, of, func(dir *mount.Dir) (T, error) {
		// If /pav is not mounted, a missing file does not mean that it was never written.
		if mounted, err := mount.IsMountPoint(of.pav()); err != nil || !mounted {
			return none, errors.Join(err, ErrLost)
		}
		return f(of, dir)
	})
}

// ReadPod returns the text of a file in a pod's own directory, of at most limit bytes. Its errors are
// ErrLost, and those of mount.Dir.ReadText. It must be called after the end of the pod's containers, or after PodReady.
func (d *Directories) ReadPod(ctx context.Context, id, name string, limit int) (string, error) {
	text, err := insidePod(ctx, d, id, func(_ directory, dir *mount.Dir) (string, error) { return dir.ReadText(name, limit) })
	if errors.Is(err, errCovered) {
		return "", fmt.Errorf("reading %q: %w", name, err)
	}
	return text, err
}

// UnpublishPod unmounts a pod's own directory from target, and removes the directory with its content. It may be
// repeated after it was interrupted at any point.
func (d *Directories) UnpublishPod(ctx context.Context, id, target string) error {
	of, err := d.ofPod(id)
	if err != nil {
		return err
	}
	d.forget(of)
	return d.host.Do(ctx, func() error {
		if _, err := d.unpublish(ctx, target); err != nil {
			return err
		}
		return of.remove(ctx)
	})
}

// RemovePod removes a pod's own directory with its content. If the directory is still published, it does nothing and
// reports that.
func (d *Directories) RemovePod(ctx context.Context, id string) (inUse bool, err error) {
	of, err := d.ofPod(id)
	if err != nil {
		return false, err
	}
	return mount.In(ctx, d.host, func() (bool, error) {
		if inUse, err := d.inUse(of); err != nil || inUse {
			return inUse, err
		}
		d.forget(of)
		return false, of.remove(ctx)
	})
}

// Pods returns the IDs of the volumes that have the directory of a single pod.
func (d *Directories) Pods(ctx context.Context) ([]string, error) {
	return mount.In(ctx, d.host, func() ([]string, error) {
		entries, err := os.ReadDir(d.pods())
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing the directories of pods: %w", err)
		}
		var ids []string
		for _, entry := range entries {
			if volumeID.MatchString(entry.Name()) {
				ids = append(ids, entry.Name())
			}
		}
		return ids, nil
	})
}
