package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// identity implements CSI's Identity service for one driver.
type identity struct {
	csi.UnimplementedIdentityServer
	driver, version string
}

// GetPluginInfo implements csi.IdentityServer.
func (s *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.driver, VendorVersion: s.version}, nil
}

// GetPluginCapabilities implements csi.IdentityServer. There is no Controller service: the controller
// agent provisions natively.
func (s *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

// Probe implements csi.IdentityServer. The sockets exist only while the agent serves.
func (s *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}
