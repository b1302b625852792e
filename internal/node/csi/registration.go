package csi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/albertofaria/pav/internal/observability"
)

// registration is what is known of a driver's registration with kubelet.
type registration struct {
	// wanted says that kubelet must know the driver. A driver that is only served is known to kubelet from an earlier
	// agent.
	wanted bool

	answer answer
}

// answer is what kubelet said last about the registration of a driver.
type answer int

const (
	kubeletSilent answer = iota
	kubeletRegistered
	kubeletRefused
)

// link makes kubelet register a driver that is served, also one that it has registered already: kubelet watches the
// directory. What it finds there is a link to the driver's socket, which serves kubelet's plugin registration service,
// too. It must be called with the lock held.
func (r *Registry) link(name string) error {
	path := r.registration(name)
	temporary := temporaryPath(path)
	target, err := filepath.Rel(r.registryDir, r.socket(name))
	if err != nil {
		return fmt.Errorf("registering driver %q: %w", name, err)
	}
	if err := removeFile(temporary); err != nil {
		return fmt.Errorf("registering driver %q: %w", name, err)
	}
	if err := os.Symlink(target, temporary); err != nil {
		return fmt.Errorf("registering driver %q: %w", name, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("registering driver %q: %w", name, err)
	}
	return nil
}

// registrationServer implements kubelet's plugin registration service for all drivers.
type registrationServer struct {
	registerapi.UnimplementedRegistrationServer
	registry *Registry
}

// GetInfo implements registerapi.RegistrationServer.
func (s *registrationServer) GetInfo(ctx context.Context, _ *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	d, err := driverOf(ctx)
	if err != nil {
		return nil, err
	}
	return &registerapi.PluginInfo{
		Type:              registerapi.CSIPlugin,
		Name:              d.name,
		Endpoint:          s.registry.socket(d.name),
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus implements registerapi.RegistrationServer.
func (s *registrationServer) NotifyRegistrationStatus(ctx context.Context, r *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	d, err := driverOf(ctx)
	if err != nil {
		return nil, err
	}
	said := kubeletRegistered
	if !r.GetPluginRegistered() {
		said = kubeletRefused
		s.registry.log.Info("kubelet refused the driver", observability.Provisioner, d.name, observability.Reason, r.GetError())
	}
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	d.registration.answer = said
	return &registerapi.RegistrationStatusResponse{}, nil
}
