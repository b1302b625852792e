package pavdir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/mount"
)

// Publish makes the stage's directory available at target, a path in a workflow pod's folder, so
// that mounts made below either appear below the other. It may be repeated.
func (d *Directories) Publish(ctx context.Context, stage, target string) error {
	return d.host.Do(ctx, func() error {
		mounted, err := mount.IsMountPoint(target)
		if err != nil || mounted {
			return err
		}
		if err := mount.CreateDir(filepath.Dir(target), filepath.Base(target), 0o750); err != nil {
			return err
		}
		return mount.BindShared(d.pav(stage), target)
	})
}

// Unpublish takes a stage's directory away from target, whichever stage's it is, and returns the
// stage's name; empty where nothing of a stage was there. What the pod mounted below /pav stays in
// the stage's directory.
func (d *Directories) Unpublish(ctx context.Context, target string) (stage string, err error) {
	err = d.host.Do(ctx, func() error {
		source, err := d.sourceOf(target)
		if err != nil {
			return err
		}
		if source != "" {
			stage = filepath.Base(filepath.Dir(source))
			// Unmounting the target takes what is mounted below it away from all its peers, in every
			// mount namespace. The source must be none of them any more.
			if err := mount.Separate(source); err != nil {
				return err
			}
		}
		if err := mount.Unmount(ctx, target); err != nil {
			return err
		}
		return removeTarget(target)
	})
	return stage, err
}

// removeTarget removes the directory that a pod's /pav was mounted on. It is empty, or not ours to delete.
func removeTarget(target string) error {
	if err := unix.Rmdir(target); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing %q: %w", target, err)
	}
	return nil
}

// sourceOf returns the stage's directory that is mounted at target, or nothing.
func (d *Directories) sourceOf(target string) (string, error) {
	at, err := mount.Mounts(target)
	if err != nil {
		return "", err
	}
	stages := filepath.Join(d.root(), "stages")
	sources, err := mount.Mounts(stages)
	if err != nil {
		return "", err
	}
	for _, t := range at {
		if t.Point != target {
			continue
		}
		for _, s := range sources {
			if s.PeerGroup != 0 && s.PeerGroup == t.PeerGroup && s.Point == d.pav(filepath.Base(filepath.Dir(s.Point))) {
				return s.Point, nil
			}
		}
	}
	return "", nil
}

// Published says whether /pav is still mounted for the pod.
func (d *Directories) Published(ctx context.Context, pod types.UID) (bool, error) {
	var published bool
	err := d.host.Do(ctx, func() error {
		mounts, err := mount.Mounts(filepath.Join(d.kubelet, "pods", string(pod), "volumes", "kubernetes.io~csi", "pav"))
		published = len(mounts) > 0
		return err
	})
	return published, err
}
