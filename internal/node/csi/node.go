package csi

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/albertofaria/pav/internal/node/stage"
)

// Stager does the work of the Node service.
type Stager interface {
	Stage(ctx context.Context, volume stage.Volume, want stage.Staging) error
	Unstage(ctx context.Context, volume stage.Volume, path string) error
	Publisher
	Expand(ctx context.Context, volume stage.Volume, capacity int64) error
	Stats(ctx context.Context, volume stage.Volume, path string) (stage.Stats, error)
}

// Publisher makes volumes available to client pods.
type Publisher interface {
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

// NodeGetCapabilities implements csi.NodeServer. Kubelet stages a volume once on a node, for any number of pods. It
// does so with every scope, since a driver's capabilities must not change with its definition. With
// SINGLE_NODE_MULTI_WRITER kubelet distinguishes ReadWriteOncePod from ReadWriteOnce.
func (s *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return capabilities(
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_VOLUME_CONDITION,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
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

// NodeStageVolume implements csi.NodeServer. "This operation MUST be idempotent": a call that finds a staging pod
// waits for it. Nothing is mounted at the staging path, which is a directory of kubelet for both modes: kubelet
// removes it with its content when the volume is unstaged.
func (s *node) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := checkRequest(r.GetVolumeId(), requestPath{"staging_target_path", r.GetStagingTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	mode, err := modeOf(r.GetVolumeCapability())
	if err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.stager.Stage(ctx, s.volume(r.GetVolumeId()), stage.Staging{Mode: mode, Path: r.GetStagingTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume implements csi.NodeServer. "If the volume corresponding to the volume_id is not
// staged to the staging_target_path, the Plugin MUST reply 0 OK."
func (s *node) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := checkRequest(r.GetVolumeId(), requestPath{"staging_target_path", r.GetStagingTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.stager.Unstage(ctx, s.volume(r.GetVolumeId()), r.GetStagingTargetPath()); err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume implements csi.NodeServer. With scope Node it is a bind mount, and needs no API
// server; with scope Pod it stages the volume for the client pod. For a volume of the mode Block "the SP
// SHALL place a block special file at target_path": kubelet has created only the parent directory.
func (s *node) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := checkRequest(r.GetVolumeId(), requestPath{"staging_target_path", r.GetStagingTargetPath()}, requestPath{"target_path", r.GetTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	publication, err := publicationOf(r)
	if err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.stager.Publish(ctx, s.volume(r.GetVolumeId()), publication); err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume implements csi.NodeServer. It "MUST delete the file or directory it created at this path".
func (s *node) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := checkRequest(r.GetVolumeId(), requestPath{"target_path", r.GetTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.stager.Unpublish(ctx, s.volume(r.GetVolumeId()), r.GetTargetPath()); err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeExpandVolume implements csi.NodeServer. "This operation MUST be idempotent." Kubelet calls it for a volume that a pod has, and
// when one gets it, while the status of the claim says that the expansion on a node is pending.
func (s *node) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if err := checkLooking(r.GetVolumeId(), r.GetVolumePath()); err != nil {
		return nil, toStatus(err)
	}
	capacity := r.GetCapacityRange().GetRequiredBytes()
	if capacity <= 0 {
		return nil, toStatus(fmt.Errorf("%w: capacity_range.required_bytes is %d", errInvalid, capacity))
	}
	ctx, cancel := withMargin(ctx)
	defer cancel()
	if err := s.stager.Expand(ctx, s.volume(r.GetVolumeId()), capacity); err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: capacity}, nil
}

func (s *node) volume(handle string) stage.Volume {
	return stage.Volume{Driver: s.driver, Handle: handle}
}

// withMargin makes the work end a little before the caller's deadline, so that the caller gets an error that says
// what it was waiting for.
func withMargin(ctx context.Context) (context.Context, context.CancelFunc) {
	const margin = 3 * time.Second
	deadline, ok := ctx.Deadline()
	if !ok || time.Until(deadline) < 4*margin {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-margin))
}
