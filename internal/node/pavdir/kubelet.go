package pavdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/mount"
)

// kubeletDirectories are the directories below a pod's directory in which kubelet has an entry for each CSI volume,
// with the name of the PersistentVolume: a directory, or a link to a block device. The mount is below the entry, so
// the entry can be read even if the volume hangs.
var kubeletDirectories = []string{"volumes/kubernetes.io~csi", "volumeDevices/kubernetes.io~csi"}

// Runs reports whether a container of the pod runs on the node, regardless of the API server and kubelet: a container
// has files of its pod's directory mounted.
func (d *Directories) Runs(ctx context.Context, uid types.UID) (bool, error) {
	if name := string(uid); name == "." || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return false, fmt.Errorf("looking for the containers of a pod: %q is no UID", uid)
	}
	return mount.In(ctx, d.host, func() (bool, error) {
		return mount.MountedElsewhere(filepath.Join(d.kubelet, "pods", string(uid)))
	})
}

// KubeletHas returns the UIDs of the pods that have the PersistentVolume of that name according to kubelet's
// directories, sorted. The API server may not have these pods any more.
func (d *Directories) KubeletHas(ctx context.Context, volumeName string) ([]string, error) {
	if volumeName == "." || volumeName != filepath.Base(volumeName) || !filepath.IsLocal(volumeName) {
		return nil, fmt.Errorf("looking for the pods of a volume: %q is not the name of a volume", volumeName)
	}
	return mount.In(ctx, d.host, func() ([]string, error) {
		pods := filepath.Join(d.kubelet, "pods")
		entries, err := os.ReadDir(pods)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing kubelet's pods: %w", err)
		}
		var uids []string
		for _, entry := range entries {
			has, err := podHas(filepath.Join(pods, entry.Name()), volumeName)
			if err != nil {
				return nil, fmt.Errorf("looking into kubelet's directory of pod %q: %w", entry.Name(), err)
			}
			if has {
				uids = append(uids, entry.Name())
			}
		}
		return uids, nil
	})
}

func podHas(pod, volumeName string) (bool, error) {
	for _, below := range kubeletDirectories {
		has, err := exists(filepath.Join(pod, below, volumeName))
		if errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if has || err != nil {
			return has, err
		}
	}
	return false, nil
}
