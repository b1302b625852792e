package csi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observability"
)

// Directories are the /pav directories of the node that the pods of a stage share.
type Directories interface {
	Publish(ctx context.Context, stage, target string) error
	Unpublish(ctx context.Context, target string) (stage string, err error)

	// Begun reports whether the node has a /pav at target, or a part of the /pav of a single pod for that volume ID.
	Begun(ctx context.Context, volumeID, target string) (bool, error)
}

// Collector gives the controller agent's pods a /pav of their own, and reports the files that they leave there.
type Collector interface {
	Publish(ctx context.Context, volumeID string, pod pavdir.Pod, target string) error
	Announce(ctx context.Context, pod pavdir.Pod) error
	AwaitReady(ctx context.Context, volumeID string, pod pavdir.Pod)
	Unpublish(ctx context.Context, volumeID, target string) (found bool, err error)
}

// pavNode implements CSI's Node service for the inline volumes that are the /pav of workflow pods.
type pavNode struct {
	csi.UnimplementedNodeServer
	nodeID    string
	boot      pavdir.Boot
	client    client.Reader
	dirs      Directories
	collector Collector
	waker     Waker
	foreign   *foreignPods

	// publishing has the volumes that calls publish: a call that hangs may continue after kubelet has given it up.
	publishing sync.Map
}

// Waker wakes the calls that wait for an event of a stage.
type Waker interface {
	Wake(stage string)
	WakeAll()
}

// NodeGetInfo implements csi.NodeServer.
func (s *pavNode) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.nodeID}, nil
}

// NodeGetCapabilities implements csi.NodeServer.
func (s *pavNode) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return capabilities(), nil
}

// NodePublishVolume implements csi.NodeServer: it gives a workflow pod its /pav, before its containers start.
func (s *pavNode) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := checkRequest(r.GetVolumeId(), requestPath{"target_path", r.GetTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	if _, goesOn := s.publishing.LoadOrStore(r.GetVolumeId(), nil); goesOn {
		return nil, toStatus(errGoesOn)
	}
	defer s.publishing.Delete(r.GetVolumeId())
	user, err := s.userOf(ctx, r.GetVolumeContext())
	observability.Note(ctx, observability.Stage, user.stage)
	if user.pod.Name != "" {
		observability.Note(ctx, observability.Pod, observability.Name(user.pod.Namespace, user.pod.Name))
	}
	switch {
	case errors.Is(err, errForeignPod):
		err = s.refuse(ctx, r, err)
	case err != nil:
	case user.stage != "":
		err = s.dirs.Publish(ctx, user.stage, r.GetTargetPath())
	default:
		err = s.collector.Publish(ctx, r.GetVolumeId(), user.pod, r.GetTargetPath())
		if err == nil && user.announce {
			err = s.collector.Announce(ctx, user.pod)
		}
		if err == nil && user.mayBeReady {
			s.collector.AwaitReady(ctx, r.GetVolumeId(), user.pod)
		}
	}
	if err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// refuse returns the error for a pod that may not have a /pav. It is final only if no earlier call, for which the pod
// was still PaV's, has left anything: after a final error kubelet never calls NodeUnpublishVolume.
func (s *pavNode) refuse(ctx context.Context, r *csi.NodePublishVolumeRequest, foreign error) error {
	begun, err := s.dirs.Begun(ctx, r.GetVolumeId(), r.GetTargetPath())
	if err != nil {
		return fmt.Errorf("%w; whether an earlier call has begun to publish it is not known: %w", errBegun, err)
	}
	if begun {
		return fmt.Errorf("%w: %w", errBegun, foreign)
	}
	return foreign
}

// NodeUnpublishVolume implements csi.NodeServer: it takes /pav from a workflow pod, whose containers have ended.
func (s *pavNode) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := checkRequest(r.GetVolumeId(), requestPath{"target_path", r.GetTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	found, err := s.collector.Unpublish(ctx, r.GetVolumeId(), r.GetTargetPath())
	if err != nil {
		return nil, toStatus(err)
	}
	if found {
		return &csi.NodeUnpublishVolumeResponse{}, nil
	}
	stageName, err := s.dirs.Unpublish(ctx, r.GetTargetPath())
	if err != nil {
		return nil, toStatus(err)
	}
	if stageName != "" {
		s.waker.Wake(stageName)
	} else {
		s.waker.WakeAll() // An earlier call or agent was interrupted, and the stage is not known any more.
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
