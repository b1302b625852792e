package csi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// Registry serves drivers and keeps them registered with kubelet.
type Registry struct {
	log                    logr.Logger
	socketDir, registryDir string

	mu       sync.Mutex
	drivers  map[string]*driver
	draining sync.WaitGroup // servers of drivers that were replaced
}

type driver struct {
	server *grpc.Server

	// registered says that kubelet can find the driver. A driver that is only served is known to kubelet from an
	// earlier agent.
	registered bool
	served     sync.WaitGroup
	kubelet    atomic.Int32 // the last registration status from kubelet
}

// NewRegistry returns a Registry without drivers, for the kubelet with the directory kubeletDir.
func NewRegistry(kubeletDir string, log logr.Logger) (*Registry, error) {
	r := &Registry{
		log:         log,
		socketDir:   filepath.Join(kubeletDir, "plugins", pavv1.Driver, "csi"),
		registryDir: filepath.Join(kubeletDir, "plugins_registry"),
		drivers:     map[string]*driver{},
	}
	if err := os.MkdirAll(r.socketDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory for CSI sockets: %w", err)
	}
	const longest = 107 // bytes of a socket's path, by unix(7)
	for _, path := range []string{r.socket("x"), r.registration("x")} {
		if n := len(temporaryPath(path)); n > longest {
			return nil, fmt.Errorf("the kubelet directory %q is too long a path: a socket below it would have %d bytes, of at most %d", kubeletDir, n, longest)
		}
	}
	return r, nil
}

// The names of socket and registration are hashes, as names of provisioners are too long for the paths of sockets.
func (r *Registry) socket(name string) string {
	return filepath.Join(r.socketDir, workflow.Hash(name)+suffix)
}

func (r *Registry) registration(name string) string {
	return filepath.Join(r.registryDir, prefix+workflow.Hash(name)+suffix)
}

const (
	prefix = "pav-"
	suffix = ".sock"
)

// The names of PaV's sockets, also before they are served; no other driver has such names.
var (
	ourSocket       = regexp.MustCompile(`^\.?[0-9a-f]{20}\.sock$`)
	ourRegistration = regexp.MustCompile(`^\.?` + prefix + `[0-9a-f]{20}\.sock$`)
)

// temporaryPath is the path of a socket until it is served. Kubelet ignores names that begin with a dot.
func temporaryPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
}

// Serve serves a driver, but does not register it: kubelet may know it from an earlier agent, whose registration
// stays.
func (r *Registry) Serve(name string, services Services) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drivers[name] != nil {
		return nil
	}
	return r.serve(name, services, false)
}

// Register serves a driver and registers it. It does nothing if the driver is already registered. Calls of a driver
// that was only served continue.
func (r *Registry) Register(name string, services Services) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	former := r.drivers[name]
	if former != nil && former.registered {
		return nil
	}
	if err := r.serve(name, services, true); err != nil {
		return err
	}
	if former != nil {
		r.draining.Go(func() { former.drain(callTimeout) })
	}
	return nil
}

// Renew is Register for a driver whose services have changed: a registered driver is served again, and kubelet, which
// sees a new socket, registers it again. Calls in progress are canceled.
func (r *Registry) Renew(name string, services Services) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop(name)
	return r.serve(name, services, true)
}

// sockets returns the paths of a driver's sockets.
func (r *Registry) sockets(name string, registered bool) []string {
	if registered {
		return []string{r.socket(name), r.registration(name)}
	}
	return []string{r.socket(name)}
}

// serve must be called with the lock held.
func (r *Registry) serve(name string, services Services, registered bool) error {
	d := &driver{registered: registered, server: grpc.NewServer(
		grpc.UnaryInterceptor(Log(r.log, name)),
		// Stopping the server waits for connections that have sent nothing yet.
		grpc.ConnectionTimeout(2*time.Second),
	)}
	services(d.server)
	registerapi.RegisterRegistrationServer(d.server, &registration{log: r.log, name: name, endpoint: r.socket(name), driver: d})
	for _, path := range r.sockets(name, registered) {
		listener, err := listenOn(path)
		if err != nil {
			d.server.Stop()
			d.served.Wait()
			return fmt.Errorf("serving driver %q: %w", name, errors.Join(err, removeFile(r.registration(name)), removeFile(r.socket(name))))
		}
		d.served.Go(func() {
			if err := d.server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
				r.log.Error(err, "a driver is not served any more", observability.Provisioner, name)
			}
		})
	}
	r.drivers[name] = d
	r.log.Info("driver served", observability.Provisioner, name, "registered", registered)
	return nil
}

// listenOn starts to serve at path atomically, even if the socket of an earlier agent is there: the driver never
// disappears for kubelet when the agent is restarted.
func listenOn(path string) (net.Listener, error) {
	temporary := temporaryPath(path)
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, err
	}
	// The sockets outlive the agent, so that calls fail as unavailable until the next agent serves them.
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(temporary, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if err := os.Rename(temporary, path); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// callTimeout is how long calls of a driver that is being unregistered may take to end.
const callTimeout = 15 * time.Second

// Unregister unregisters a driver. Calls in progress can complete: the last call of a volume releases its
// PavProvisioner, and if kubelet did not get the answer, it would repeat the call forever.
func (r *Registry) Unregister(name string) error {
	r.mu.Lock()
	err := errors.Join(removeFile(r.registration(name)), removeFile(r.socket(name)))
	d := r.drivers[name]
	delete(r.drivers, name)
	r.mu.Unlock()
	if d != nil {
		d.drain(callTimeout)
		r.log.Info("driver unregistered", observability.Provisioner, name)
	}
	return err
}

// drain stops a driver's server when its calls have ended, or after a timeout.
func (d *driver) drain(timeout time.Duration) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.server.GracefulStop()
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	d.server.Stop()
	<-ended
	d.served.Wait()
}

// stop stops a driver's server, and cancels calls in progress. Its sockets stay. It must be called with the lock
// held.
func (r *Registry) stop(name string) {
	d := r.drivers[name]
	if d == nil {
		return
	}
	d.server.Stop()
	d.served.Wait()
	delete(r.drivers, name)
}

// Prune removes the sockets of an earlier agent whose drivers are neither in names nor registered.
func (r *Registry) Prune(names []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := map[string]bool{}
	for _, name := range slices.AppendSeq(slices.Clone(names), maps.Keys(r.drivers)) {
		keep[r.socket(name)] = true
		keep[r.registration(name)] = true
	}
	var errs []error
	for dir, ours := range map[string]*regexp.Regexp{r.registryDir: ourRegistration, r.socketDir: ourSocket} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("listing sockets: %w", err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if ours.MatchString(entry.Name()) && !keep[path] {
				errs = append(errs, removeFile(path))
			}
		}
	}
	return errors.Join(errs...)
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a socket: %w", err)
	}
	return nil
}

// Names returns the names of the drivers that are served.
func (r *Registry) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.drivers))
}

// Empty reports whether no driver is registered.
func (r *Registry) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.drivers) == 0
}

// Close ends all servers. The sockets stay for the next agent.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.drivers {
		r.stop(name)
	}
	r.draining.Wait()
}

// registration implements kubelet's plugin registration service.
type registration struct {
	registerapi.UnimplementedRegistrationServer
	log            logr.Logger
	name, endpoint string
	driver         *driver
}

// GetInfo implements registerapi.RegistrationServer.
func (s *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type:              registerapi.CSIPlugin,
		Name:              s.name,
		Endpoint:          s.endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus implements registerapi.RegistrationServer.
func (s *registration) NotifyRegistrationStatus(_ context.Context, r *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if !r.GetPluginRegistered() {
		s.driver.kubelet.Store(kubeletRefused)
		s.log.Info("kubelet refused the driver", observability.Provisioner, s.name, observability.Reason, r.GetError())
		return &registerapi.RegistrationStatusResponse{}, nil
	}
	s.driver.kubelet.Store(kubeletRegistered)
	return &registerapi.RegistrationStatusResponse{}, nil
}
