package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/test/kubelet"
)

// adapter stands between the sanity suite and the node's agent. Calls of Identity and Node are passed on;
// those of Controller, which PaV does not have, make claims and persistent volumes by hand.
type adapter struct {
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer

	n    *node
	t    *testing.T
	node csi.NodeClient

	mu      sync.Mutex
	volumes map[string]kubelet.Volume // by handle
}

// serveSanity serves the adapter at csi.sock in a new directory until the test ends, and returns the directory.
func (n *node) serveSanity(t *testing.T) string {
	t.Helper()
	var endpoint string
	n.succeed(t, "the registration of the driver", func(ctx context.Context) (err error) {
		endpoint, err = n.Endpoint(ctx, n.provisioner)
		return err
	})
	conn, err := grpc.NewClient("unix://"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	a := &adapter{n: n, t: t, node: csi.NewNodeClient(conn), volumes: map[string]kubelet.Volume{}}
	dir, err := os.MkdirTemp("", "pav-") //nolint:usetesting // The paths of sockets may not be as long as those of t.TempDir are.
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "csi.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, &identityAdapter{client: csi.NewIdentityClient(conn)})
	csi.RegisterControllerServer(server, a)
	csi.RegisterNodeServer(server, a)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = conn.Close()
		if err := os.Remove(dir); err != nil { // the suite has removed what it made
			t.Error(err)
		}
	})
	return dir
}

// CreateVolume implements csi.ControllerServer.
func (a *adapter) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	handle, size := "made-"+r.GetName(), r.GetCapacityRange().GetRequiredBytes()
	block := r.GetVolumeCapabilities()[0].GetBlock() != nil
	if block {
		handle = "block-" + r.GetName()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	v := kubelet.Volume{Driver: a.n.provisioner, Handle: handle, Name: fmt.Sprintf("pv-%s-sanity-%d", a.n.Node, len(a.volumes)), Block: block}
	a.volumes[handle] = v
	makeVolume(ctx, a.t, a.n.c, v, func(pv *corev1.PersistentVolume) {
		switch r.GetVolumeCapabilities()[0].GetAccessMode().GetMode() {
		case csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER:
			pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		default:
		}
	})
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: handle, CapacityBytes: size}}, nil
}

// DeleteVolume implements csi.ControllerServer.
func (a *adapter) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	a.mu.Lock()
	v, found := a.volumes[r.GetVolumeId()]
	a.mu.Unlock()
	if found {
		removeVolume(ctx, a.t, a.n.c, v)
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerGetCapabilities implements csi.ControllerServer.
func (a *adapter) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{
		Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{
			Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		}},
	}}}, nil
}

// NodeStageVolume implements csi.NodeServer. As kubelet does, it repeats a call for a volume that the
// agent has not heard of yet.
func (a *adapter) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (response *csi.NodeStageVolumeResponse, err error) {
	a.mu.Lock()
	_, ours := a.volumes[r.GetVolumeId()]
	a.mu.Unlock()
	a.n.Until(ctx, func(ctx context.Context) error {
		response, err = a.node.NodeStageVolume(ctx, r)
		if ours && status.Code(err) == codes.NotFound {
			return err
		}
		return nil
	})
	return response, err
}

// NodeUnstageVolume implements csi.NodeServer.
func (a *adapter) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return a.node.NodeUnstageVolume(ctx, r)
}

// NodePublishVolume implements csi.NodeServer.
func (a *adapter) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return a.node.NodePublishVolume(ctx, r)
}

// NodeUnpublishVolume implements csi.NodeServer.
func (a *adapter) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return a.node.NodeUnpublishVolume(ctx, r)
}

// NodeGetVolumeStats implements csi.NodeServer.
func (a *adapter) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	return a.node.NodeGetVolumeStats(ctx, r)
}

// NodeExpandVolume implements csi.NodeServer.
func (a *adapter) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	return a.node.NodeExpandVolume(ctx, r)
}

// NodeGetCapabilities implements csi.NodeServer.
func (a *adapter) NodeGetCapabilities(ctx context.Context, r *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return a.node.NodeGetCapabilities(ctx, r)
}

// NodeGetInfo implements csi.NodeServer.
func (a *adapter) NodeGetInfo(ctx context.Context, r *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return a.node.NodeGetInfo(ctx, r)
}

// identityAdapter passes calls on, and adds that there is a Controller service.
type identityAdapter struct {
	csi.UnimplementedIdentityServer
	client csi.IdentityClient
}

// GetPluginInfo implements csi.IdentityServer.
func (a *identityAdapter) GetPluginInfo(ctx context.Context, r *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return a.client.GetPluginInfo(ctx, r)
}

// Probe implements csi.IdentityServer.
func (a *identityAdapter) Probe(ctx context.Context, r *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return a.client.Probe(ctx, r)
}

// GetPluginCapabilities implements csi.IdentityServer.
func (a *identityAdapter) GetPluginCapabilities(ctx context.Context, r *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	response, err := a.client.GetPluginCapabilities(ctx, r)
	if err != nil {
		return nil, err
	}
	response.Capabilities = append(response.Capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
	}})
	return response, nil
}
