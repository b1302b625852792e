package csi

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/stage"
)

// NodeGetVolumeStats implements csi.NodeServer. An abnormal volume is not an error: the answer has the condition, and
// the usage as far as it is known.
func (s *node) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := checkLooking(r.GetVolumeId(), r.GetVolumePath()); err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	stats, err := s.stager.Stats(ctx, s.volume(r.GetVolumeId()), publishedAt(r.GetVolumePath()))
	if err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodeGetVolumeStatsResponse{
		Usage:           usageOf(stats.Usage),
		VolumeCondition: &csi.VolumeCondition{Abnormal: stats.Abnormal, Message: condition(stats.Abnormal, stats.Message)},
	}, nil
}

// checkLooking checks a call that changes nothing. At a path that cannot be a target nothing is published, for which
// CSI has the code NOT_FOUND.
func checkLooking(volumeID, volumePath string) error {
	switch {
	case volumeID == "":
		return fmt.Errorf("%w: volume_id is missing", errInvalid)
	case volumePath == "":
		return fmt.Errorf("%w: volume_path is missing", errInvalid)
	case !isTarget(volumePath):
		return fmt.Errorf("%w: not published at %q", stage.ErrUnknownVolume, volumePath)
	}
	return nil
}

// usageOf leaves out unknown values: a device has no inodes, and of a hung volume not even the size is known.
func usageOf(usage mount.Usage) []*csi.VolumeUsage {
	var volumeUsage []*csi.VolumeUsage
	if bytes := usage.Bytes; bytes.Total > 0 {
		volumeUsage = append(volumeUsage, &csi.VolumeUsage{Unit: csi.VolumeUsage_BYTES, Total: bytes.Total, Available: bytes.Available, Used: bytes.Used})
	}
	if inodes := usage.Inodes; inodes.Total > 0 {
		volumeUsage = append(volumeUsage, &csi.VolumeUsage{Unit: csi.VolumeUsage_INODES, Total: inodes.Total, Available: inodes.Available, Used: inodes.Used})
	}
	return volumeUsage
}

// condition returns the message of a volume condition, in which CSI requires one.
func condition(abnormal bool, message string) string {
	switch {
	case message != "":
		return message
	case abnormal:
		return "the volume is abnormal"
	default:
		return "the volume is available"
	}
}

// publishedAt returns the target of a volume whose usage kubelet requests by path. For a volume of
// the mode Block it names its own bind of the device, <plugins>/kubernetes.io/csi/volumeDevices/<volume>/dev/<pod>,
// and not the target <plugins>/kubernetes.io/csi/volumeDevices/publish/<volume>/<pod> (NewBlockVolumeMapper
// in pkg/volume/csi/csi_plugin.go).
func publishedAt(path string) string {
	devices, pod := filepath.Split(path)
	volume, dev := filepath.Split(filepath.Clean(devices))
	root, name := filepath.Split(filepath.Clean(volume))
	root = filepath.Clean(root)
	if dev != "dev" || filepath.Base(root) != "volumeDevices" || filepath.Base(filepath.Dir(root)) != "csi" {
		return path
	}
	return filepath.Join(root, "publish", name, pod)
}
