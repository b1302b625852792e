package csi

import (
	"fmt"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

// requestPath is a path of a call, with the name of its field.
type requestPath struct{ field, value string }

func checkRequest(volumeID string, paths ...requestPath) error {
	if volumeID == "" {
		return fmt.Errorf("%w: volume_id is missing", errInvalid)
	}
	for _, p := range paths {
		if p.value == "" {
			return fmt.Errorf("%w: %s is missing", errInvalid, p.field)
		}
		if !isTarget(p.value) {
			return fmt.Errorf("%w: %s is not an absolute path in its shortest form", errInvalid, p.field)
		}
	}
	return nil
}

// isTarget reports whether a path is absolute and in its shortest form.
func isTarget(path string) bool { return filepath.IsAbs(path) && filepath.Clean(path) == path }

// modeOf checks a capability and returns its volume mode. The scheduler, and package stage with the PersistentVolume,
// check access modes; here it is only checked that there is one.
func modeOf(c *csi.VolumeCapability) (corev1.PersistentVolumeMode, error) {
	switch {
	case c == nil:
		return "", fmt.Errorf("%w: volume_capability is missing", errInvalid)
	case c.GetBlock() == nil && c.GetMount() == nil:
		return "", fmt.Errorf("%w: volume_capability has no access type", errInvalid)
	case c.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_UNKNOWN:
		return "", fmt.Errorf("%w: volume_capability has no access mode", errInvalid)
	case c.GetBlock() != nil:
		return corev1.PersistentVolumeBlock, nil
	}
	return corev1.PersistentVolumeFilesystem, nil
}

// publicationOf returns the Publication of a client pod. Kubelet identifies the pod, as the CSIDriver has
// podInfoOnMount; other callers need not.
func publicationOf(r *csi.NodePublishVolumeRequest) (stage.Publication, error) {
	mode, err := modeOf(r.GetVolumeCapability())
	if err != nil {
		return stage.Publication{}, err
	}
	pod := r.GetVolumeContext()
	return stage.Publication{
		Target:  r.GetTargetPath(),
		Options: bindOptions(r),
		Mode:    mode,
		Single:  r.GetVolumeCapability().GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		Client: pavdir.Client{
			Namespace: pod[podNamespaceKey],
			Name:      pod[podNameKey],
			UID:       types.UID(pod[podUIDKey]),
			Target:    r.GetTargetPath(),
		},
	}, nil
}

// bindOptions returns what the client's view is restricted to: what the pod asks for, and those of the
// volume's mount options that a bind can carry. Anyone who writes to a volume, on whichever node, is not to make
// programs or device files there that gain rights on this one, unless the volume's mount options say suid or
// dev; of opposites the last one counts, as with mount(8). The access mode plays no part: kubelet tells but the first
// of a volume's, and if there is none but ReadOnlyMany, the stage is read-only. A device is given no
// nodev, with which nobody could open it: a capability for one has no mount options.
func bindOptions(r *csi.NodePublishVolumeRequest) mount.BindOptions {
	isDirectory := r.GetVolumeCapability().GetBlock() == nil
	options := mount.BindOptions{ReadOnly: r.GetReadonly(), NoSuid: isDirectory, NoDev: isDirectory}
	for _, flag := range r.GetVolumeCapability().GetMount().GetMountFlags() {
		switch flag {
		case "ro":
			options.ReadOnly = true
		case "nosuid", "suid":
			options.NoSuid = flag == "nosuid"
		case "nodev", "dev":
			options.NoDev = flag == "nodev"
		case "noexec":
			options.NoExec = true
		case "noatime":
			options.NoAtime = true
		}
	}
	return options
}
