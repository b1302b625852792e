package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// identity implements CSI's Identity service for one driver.
type identity struct {
	csi.UnimplementedIdentityServer
	driver, version string
	constrained     bool // not every node can use every volume
}

// GetPluginInfo implements csi.IdentityServer.
func (s *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.driver, VendorVersion: s.version}, nil
}

// GetPluginCapabilities implements csi.IdentityServer. There is no Controller service: the controller
// agent provisions natively.
func (s *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	response := &csi.GetPluginCapabilitiesResponse{}
	if s.constrained {
		// CSI: "volumes for this plugin MAY NOT be equally accessible by all nodes in the cluster".
		response.Capabilities = []*csi.PluginCapability{{
			Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{
				Type: csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
			}},
		}}
	}
	return response, nil
}

// Probe implements csi.IdentityServer. The sockets exist only while the agent serves.
func (s *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}
