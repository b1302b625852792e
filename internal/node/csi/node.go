package csi

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/stage"
)

// Stager is the domain behind the Node service.
type Stager interface {
	Stage(ctx context.Context, volume stage.Volume) error
	Unstage(ctx context.Context, volume stage.Volume) error
	Publish(ctx context.Context, volume stage.Volume, publication stage.Publication) error
	Unpublish(ctx context.Context, volume stage.Volume, target string) error
}

// node implements CSI's Node service for one PavProvisioner.
type node struct {
	csi.UnimplementedNodeServer
	driver, nodeID string
	stager         Stager
	topology       Topology
}

// NodeGetInfo implements csi.NodeServer. Kubelet calls it when the driver is registered, and only then.
func (s *node) NodeGetInfo(ctx context.Context, _ *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	topology, err := s.topology.of(ctx, s.nodeID)
	if err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodeGetInfoResponse{NodeId: s.nodeID, AccessibleTopology: topology}, nil
}

// NodeGetCapabilities implements csi.NodeServer. Volumes are staged once a node, whatever the number
// of pods; SINGLE_NODE_MULTI_WRITER makes kubelet tell ReadWriteOncePod from ReadWriteOnce.
func (s *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return capabilities(
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	), nil
}

func capabilities(types ...csi.NodeServiceCapability_RPC_Type) *csi.NodeGetCapabilitiesResponse {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range types {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}},
		})
	}
	return response
}

// NodeStageVolume implements csi.NodeServer. "This operation MUST be idempotent": a call that finds a
// staging pod at work joins it. Nothing is mounted at the staging path: it is where "the volume MAY be
// published".
func (s *node) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := check(r.GetVolumeId(), path{"staging_target_path", r.GetStagingTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	if err := checkCapability(r.GetVolumeCapability()); err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.stager.Stage(ctx, s.volume(r.GetVolumeId())); err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume implements csi.NodeServer. "If the volume corresponding to the volume_id is not
// staged to the staging_target_path, the Plugin MUST reply 0 OK."
func (s *node) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := check(r.GetVolumeId(), path{"staging_target_path", r.GetStagingTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.stager.Unstage(ctx, s.volume(r.GetVolumeId())); err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume implements csi.NodeServer. It is a bind mount, and needs no API server.
func (s *node) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := check(r.GetVolumeId(), path{"staging_target_path", r.GetStagingTargetPath()}, path{"target_path", r.GetTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	if err := checkCapability(r.GetVolumeCapability()); err != nil {
		return nil, toStatus(err)
	}
	if err := s.stager.Publish(ctx, s.volume(r.GetVolumeId()), stage.Publication{
		Target:  r.GetTargetPath(),
		Options: bindOptions(r),
	}); err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume implements csi.NodeServer. It "MUST delete the file or directory it created at this path".
func (s *node) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := check(r.GetVolumeId(), path{"target_path", r.GetTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	if err := s.stager.Unpublish(ctx, s.volume(r.GetVolumeId()), r.GetTargetPath()); err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (s *node) volume(handle string) stage.Volume {
	return stage.Volume{Driver: s.driver, Handle: handle}
}

// path is a path of a call, with the name of its field.
type path struct{ field, value string }

func check(volumeID string, paths ...path) error {
	if volumeID == "" {
		return fmt.Errorf("%w: volume_id is missing", errInvalid)
	}
	for _, p := range paths {
		if p.value == "" {
			return fmt.Errorf("%w: %s is missing", errInvalid, p.field)
		}
		if !filepath.IsAbs(p.value) || filepath.Clean(p.value) != p.value {
			return fmt.Errorf("%w: %s is no absolute path in its shortest form", errInvalid, p.field)
		}
	}
	return nil
}

func checkCapability(c *csi.VolumeCapability) error {
	switch {
	case c == nil:
		return fmt.Errorf("%w: volume_capability is missing", errInvalid)
	case c.GetBlock() != nil:
		return fmt.Errorf("%w: volume_capability: PaV does not stage volumes of the mode Block yet", errInvalid)
	case c.GetMount() == nil:
		return fmt.Errorf("%w: volume_capability has no access type", errInvalid)
	case c.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_UNKNOWN:
		return fmt.Errorf("%w: volume_capability has no access mode", errInvalid)
	}
	return nil
}

// bindOptions returns what the client's view is restricted to: what the pod asks for, what the access
// mode allows, and those of the volume's mount options that a bind can carry.
func bindOptions(r *csi.NodePublishVolumeRequest) mount.BindOptions {
	options := mount.BindOptions{ReadOnly: r.GetReadonly()}
	switch r.GetVolumeCapability().GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		options.ReadOnly = true
	default:
	}
	for _, flag := range r.GetVolumeCapability().GetMount().GetMountFlags() {
		switch flag {
		case "ro":
			options.ReadOnly = true
		case "nosuid":
			options.NoSuid = true
		case "nodev":
			options.NoDev = true
		case "noexec":
			options.NoExec = true
		case "noatime":
			options.NoAtime = true
		}
	}
	return options
}

// withMargin makes the work end a little before the caller's patience, so that the caller hears what
// it was waiting for, and not only that its time is over.
func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	const margin = 3 * time.Second
	deadline, ok := ctx.Deadline()
	if !ok || time.Until(deadline) < 4*margin {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-margin))
}
