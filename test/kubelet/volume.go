package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/albertofaria/pav/internal/workflow"
)

// Volume is a volume as kubelet knows it.
type Volume struct {
	// Driver and Handle are those of the PersistentVolume, and Name is the name of the PersistentVolume.
	Driver, Handle, Name string

	// Block is true if the volume mode is Block.
	Block bool

	// Access is the access mode that kubelet derives from the claim's. The default is SINGLE_NODE_WRITER.
	Access csi.VolumeCapability_AccessMode_Mode
}

// Client is a pod that uses a volume.
type Client struct {
	// Namespace, Name and UID are the pod's.
	Namespace, Name, UID string

	// ReadOnly is true if the pod requests a read-only mount.
	ReadOnly bool
}

// StagingPath returns kubelet's staging path of a volume.
func (k *Kubelet) StagingPath(v Volume) string {
	plugins := filepath.Join(k.Dir, "plugins", "kubernetes.io", "csi")
	if v.Block {
		return filepath.Join(plugins, "volumeDevices", "staging", v.Name)
	}
	sum := sha256.Sum256([]byte(v.Handle))
	return filepath.Join(plugins, v.Driver, hex.EncodeToString(sum[:]), "globalmount")
}

// Target returns the target path of a volume for a client.
func (k *Kubelet) Target(v Volume, c Client) string {
	if v.Block {
		return filepath.Join(k.Dir, "plugins", "kubernetes.io", "csi", "volumeDevices", "publish", v.Name, c.UID)
	}
	return k.podVolume(c.UID, v.Name)
}

// Stage calls NodeStageVolume.
func (k *Kubelet) Stage(ctx context.Context, v Volume) error {
	path := k.StagingPath(v)
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	return k.call(ctx, v.Driver, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: v.Handle, StagingTargetPath: path, VolumeCapability: capability(v),
		})
		return err
	})
}

// Publish calls NodePublishVolume.
func (k *Kubelet) Publish(ctx context.Context, v Volume, c Client) error {
	target := k.Target(v, c)
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	return k.call(ctx, v.Driver, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: v.Handle, StagingTargetPath: k.StagingPath(v), TargetPath: target,
			VolumeCapability: capability(v), Readonly: c.ReadOnly,
			VolumeContext: podInfo(c.Namespace, c.Name, c.UID, "false"),
		})
		return err
	})
}

// Unpublish calls NodeUnpublishVolume, and removes the pod's directory if that succeeds.
func (k *Kubelet) Unpublish(ctx context.Context, v Volume, c Client) error {
	target := k.Target(v, c)
	err := k.call(ctx, v.Driver, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.Handle, TargetPath: target})
		return err
	})
	if err == nil {
		removeEmpty(filepath.Dir(target), k.Dir)
	}
	return err
}

// Unstage calls NodeUnstageVolume, and removes the staging path if that succeeds.
func (k *Kubelet) Unstage(ctx context.Context, v Volume) error {
	path := k.StagingPath(v)
	err := k.call(ctx, v.Driver, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.Handle, StagingTargetPath: path})
		return err
	})
	if err == nil {
		removeEmpty(path, k.Dir)
	}
	return err
}

// Expand calls NodeExpandVolume for a client that has the volume.
func (k *Kubelet) Expand(ctx context.Context, v Volume, c Client, capacity int64) error {
	return k.call(ctx, v.Driver, func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
			VolumeId: v.Handle, VolumePath: k.Target(v, c), StagingTargetPath: k.StagingPath(v),
			CapacityRange: &csi.CapacityRange{RequiredBytes: capacity}, VolumeCapability: capability(v),
		})
		return err
	})
}

// removeEmpty removes a directory and its parents, as long as they are empty, but neither top nor its children.
func removeEmpty(path, top string) {
	for filepath.Dir(path) != top && os.Remove(path) == nil {
		path = filepath.Dir(path)
	}
}

func capability(v Volume) *csi.VolumeCapability {
	access := v.Access
	if access == csi.VolumeCapability_AccessMode_UNKNOWN {
		access = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	}
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: access}}
	if v.Block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		c.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}
	}
	return c
}

// call makes a call to a driver, on a connection of its own, as kubelet does.
func (k *Kubelet) call(ctx context.Context, driver string, f func(context.Context, csi.NodeClient) error) error {
	endpoint, err := k.Endpoint(ctx, driver)
	if err != nil {
		return err
	}
	conn, err := connect(endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return f(ctx, csi.NewNodeClient(conn))
}

// Endpoint returns the socket of a driver. It registers the driver, once: it asks for the socket where drivers register, and
// answers that the driver is registered.
func (k *Kubelet) Endpoint(ctx context.Context, driver string) (string, error) {
	k.mu.Lock()
	known := k.endpoints[driver]
	k.mu.Unlock()
	if known != "" {
		return known, nil
	}
	conn, err := connect(filepath.Join(k.Dir, "plugins_registry", "pav-"+workflow.Hash(driver)+".sock"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	registration := registerapi.NewRegistrationClient(conn)
	info, err := registration.GetInfo(ctx, &registerapi.InfoRequest{})
	if err != nil {
		return "", status.Errorf(codes.Unavailable, "driver %s is not registered: %v", driver, err)
	}
	if info.GetName() != driver || info.GetType() != registerapi.CSIPlugin {
		return "", fmt.Errorf("driver %s registered as %s %s", driver, info.GetType(), info.GetName())
	}
	if _, err := registration.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: true}); err != nil {
		return "", status.Errorf(codes.Unavailable, "driver %s is not registered: %v", driver, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endpoints[driver] = info.GetEndpoint()
	return info.GetEndpoint(), nil
}

func connect(socket string) (*grpc.ClientConn, error) {
	soon := backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond}
	return grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: time.Second}))
}
