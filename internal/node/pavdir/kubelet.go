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

// kubeletDirectories are those of a pod's directory in which kubelet keeps something for each of its CSI volumes,
// under the name of the persistent volume: a directory, or a link to a block device. What is mounted is below
// that, so that it can be looked at whatever has become of the volume.
var kubeletDirectories = []string{"volumes/kubernetes.io~csi", "volumeDevices/kubernetes.io~csi"}

// Runs reports whether a container of the pod runs on the node, whatever the API server and kubelet say of
// it: a container has files of its pod's directory mounted.
func (d *Directories) Runs(ctx context.Context, uid types.UID) (bool, error) {
	if name := string(uid); name == "." || name != filepath.Base(name) || !filepath.IsLocal(name) {
		return false, fmt.Errorf("looking for the containers of a pod: %q is no UID", uid)
	}
	return mount.In(ctx, d.host, func() (bool, error) {
		return mount.MountedElsewhere(filepath.Join(d.kubelet, "pods", string(uid)))
	})
}

// KubeletHas returns the UIDs of the pods that, by kubelet's own directories, still have the persistent volume
// of that name, sorted. The API server may have forgotten them.
func (d *Directories) KubeletHas(ctx context.Context, volumeName string) ([]string, error) {
	if volumeName == "." || volumeName != filepath.Base(volumeName) || !filepath.IsLocal(volumeName) {
		return nil, fmt.Errorf("looking for the pods of a volume: %q is no name of one", volumeName)
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
