package csi

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// Registry serves drivers and keeps them registered with kubelet. Each driver has a socket in a directory of PaV, and a
// link to it where kubelet looks for drivers. Both outlive the agent.
type Registry struct {
	log                    logr.Logger
	socketDir, registryDir string
	record                 KubeletRecord
	pace                   pace

	server   *grpc.Server
	sockets  *sockets
	acceptor *acceptor
	serving  sync.WaitGroup // the server and the acceptor

	mu      sync.Mutex
	drivers map[string]*driver
	queue   []*driver     // their links are to be made
	changed chan struct{} // wakes Run
}

// NewRegistry returns a Registry without drivers, for the kubelet with the directory kubeletDir.
func NewRegistry(kubeletDir string, record KubeletRecord, log logr.Logger) (*Registry, error) {
	r := &Registry{
		log:         log,
		socketDir:   filepath.Join(kubeletDir, "plugins", pavv1.Driver, "csi"),
		registryDir: filepath.Join(kubeletDir, "plugins_registry"),
		record:      record,
		pace:        defaultPace,
		sockets:     newSockets(),
		changed:     make(chan struct{}, 1),
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
	var err error
	if r.acceptor, err = newAcceptor(log); err != nil {
		return nil, err
	}
	r.server = newServer(log, &registrationServer{registry: r})
	r.serving.Go(func() {
		if err := r.server.Serve(r.sockets); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			log.Error(err, "drivers are not served any more")
		}
	})
	r.serving.Go(func() { r.acceptor.run(r.sockets) })
	return r, nil
}

// The names of sockets and links are hashes, as names of provisioners are too long for the paths of sockets.
func (r *Registry) socket(name string) string {
	return filepath.Join(r.socketDir, socketName(name))
}

func socketName(name string) string { return workflow.Hash(name) + suffix }

func (r *Registry) registration(name string) string {
	return filepath.Join(r.registryDir, prefix+socketName(name))
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

// Serve serves a driver, but does not register it: kubelet may know it from an earlier agent, whose registration
// stays.
func (r *Registry) Serve(name string, services Services) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drivers[name] != nil {
		return nil
	}
	_, err := r.serve(name, services)
	return err
}

// Register serves a driver, and lets Run register it. A driver whose topology keys have changed is registered again,
// since kubelet asks for a driver's topology only then. Otherwise, it does nothing if the driver is already registered.
// Calls of a driver that is already served continue.
func (r *Registry) Register(name string, services Services) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.drivers[name]
	switch {
	case d == nil:
		var err error
		if d, err = r.serve(name, services); err != nil {
			return err
		}
	case d.registration.wanted && slices.Equal(d.services.Load().TopologyKeys, services.TopologyKeys):
		return nil
	default:
		d.services.Store(&services)
	}
	d.registration = registration{wanted: true}
	r.wake()
	return nil
}

// serve must be called with the lock held.
func (r *Registry) serve(name string, services Services) (*driver, error) {
	socket, err := listenOn(r.socket(name))
	if err != nil {
		return nil, fmt.Errorf("serving driver %q: %w", name, err)
	}
	d := &driver{name: name, acceptor: r.acceptor, socket: socket}
	d.services.Store(&services)
	if err := r.acceptor.add(socket, d); err != nil {
		return nil, errors.Join(fmt.Errorf("serving driver %q: %w", name, err), unix.Close(socket))
	}
	r.drivers[name] = d
	r.log.Info("driver served", observability.Provisioner, name)
	return d, nil
}

// Unregister unregisters a driver. Calls in progress can complete: the last call of a volume releases its
// PavProvisioner, and if kubelet did not get the answer, it would repeat the call forever.
func (r *Registry) Unregister(name string) error {
	r.mu.Lock()
	err := errors.Join(removeFile(r.registration(name)), removeFile(r.socket(name)))
	d := r.drivers[name]
	delete(r.drivers, name)
	r.wake()
	r.mu.Unlock()
	if d != nil {
		err = errors.Join(err, d.remove(callTimeout))
		r.log.Info("driver unregistered", observability.Provisioner, name)
	}
	return err
}

// Prune removes the sockets and links of an earlier agent whose drivers are neither in names nor served. Kubelet
// unregisters them.
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

// Names returns the names of the drivers that are served.
func (r *Registry) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.drivers))
}

// Empty reports whether no driver is served.
func (r *Registry) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.drivers) == 0
}

// TopologyKeys returns the topology keys of a driver, or nil if it is not served.
func (r *Registry) TopologyKeys(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.drivers[name]; d != nil {
		return d.services.Load().TopologyKeys
	}
	return nil
}

// Close cancels all calls, and ends the server. The sockets and links stay for the next agent.
func (r *Registry) Close() {
	r.server.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, d := range r.drivers {
		if err := d.close(); err != nil {
			r.log.Error(err, "ending a driver", observability.Provisioner, name)
		}
	}
	clear(r.drivers)
	if err := r.acceptor.close(); err != nil {
		r.log.Error(err, "ending the drivers")
	}
	r.serving.Wait()
}
