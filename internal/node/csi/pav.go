package csi

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Keys that kubelet adds to the volume context of a driver with podInfoOnMount. Kubelet controls
// them; no pod can.
const (
	podNameKey      = "csi.storage.k8s.io/pod.name"
	podNamespaceKey = "csi.storage.k8s.io/pod.namespace"
	podUIDKey       = "csi.storage.k8s.io/pod.uid"
	ephemeralKey    = "csi.storage.k8s.io/ephemeral"
)

// Directories are the /pav directories of the node.
type Directories interface {
	Publish(ctx context.Context, stage, target string) error
	Unpublish(ctx context.Context, target string) (stage string, err error)
}

// pavNode implements CSI's Node service for the inline volumes that are the /pav of workflow pods.
type pavNode struct {
	csi.UnimplementedNodeServer
	nodeID string
	client client.Reader
	dirs   Directories
	waker  Waker
}

// Waker wakes whoever waits for something about a stage.
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
	if err := check(r.GetVolumeId(), path{"target_path", r.GetTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	stageName, err := s.stageOf(ctx, r.GetVolumeContext())
	if err == nil {
		err = s.dirs.Publish(ctx, stageName, r.GetTargetPath())
	}
	if err != nil {
		return nil, toStatus(err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume implements csi.NodeServer: it takes /pav from a workflow pod, whose containers have ended.
func (s *pavNode) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := check(r.GetVolumeId(), path{"target_path", r.GetTargetPath()}); err != nil {
		return nil, toStatus(err)
	}
	stageName, err := s.dirs.Unpublish(ctx, r.GetTargetPath())
	if err != nil {
		return nil, toStatus(err)
	}
	if stageName != "" {
		s.waker.Wake(stageName)
	} else {
		s.waker.WakeAll() // An earlier call, or agent, was interrupted after the stage could be told.
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// stageOf returns the name of the PavStage that the pod works for. The pod must be what PaV makes:
// labelled so, controlled by a PavStage that exists, on this node, with that very pod on record.
func (s *pavNode) stageOf(ctx context.Context, volumeContext map[string]string) (string, error) {
	if volumeContext[ephemeralKey] != "true" {
		return "", fmt.Errorf("%w: driver %s serves inline volumes only", errInvalid, pavv1.Driver)
	}
	key := client.ObjectKey{Namespace: volumeContext[podNamespaceKey], Name: volumeContext[podNameKey]}
	pod := &corev1.Pod{}
	if err := s.client.Get(ctx, key, pod); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%w: pod %s does not exist", errForeignPod, key)
	} else if err != nil {
		return "", fmt.Errorf("getting pod %s: %w", key, err)
	}
	if pod.UID != types.UID(volumeContext[podUIDKey]) {
		return "", fmt.Errorf("%w: pod %s is another one by now", errForeignPod, key)
	}
	owner := metav1.GetControllerOf(pod)
	// Tenants can set owners, but no labels of PaV's.
	if owner == nil || pod.Labels[pavv1.WorkflowLabel] == "" || pod.Labels[pavv1.StageLabel] != owner.Name {
		return "", fmt.Errorf("%w: pod %s is none", errForeignPod, key)
	}
	return s.stageOfPod(ctx, key, owner)
}

func (s *pavNode) stageOfPod(ctx context.Context, key client.ObjectKey, owner *metav1.OwnerReference) (string, error) {
	if owner.Kind != "PavStage" || owner.APIVersion != pavv1.GroupVersion.String() {
		return "", fmt.Errorf("%w: pod %s is none", errForeignPod, key)
	}
	stage := &pavv1.PavStage{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: owner.Name}, stage); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%w: PavStage %q of pod %s does not exist", errForeignPod, owner.Name, key)
	} else if err != nil {
		return "", fmt.Errorf("getting PavStage %q: %w", owner.Name, err)
	}
	if stage.UID != owner.UID || stage.Spec.NodeName != s.nodeID || !onRecord(&stage.Status, key) {
		return "", fmt.Errorf("%w: PavStage %q knows nothing of pod %s on this node", errForeignPod, owner.Name, key)
	}
	return stage.Name, nil
}

func onRecord(status *pavv1.PavStageStatus, pod client.ObjectKey) bool {
	for _, ref := range []*pavv1.PodReference{status.StagingPod, status.UnstagingPod} {
		if ref != nil && ref.Namespace == pod.Namespace && ref.Name == pod.Name {
			return true
		}
	}
	return false
}
