package csi

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability/metrics"
)

// Alive is a healthz.Checker: it checks that the sockets of all drivers, and the links by which kubelet finds them, exist.
// If one was removed, a restarted agent creates it again.
func (r *Registry) Alive(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, d := range r.drivers {
		paths := []string{r.socket(name)}
		if step := d.registration.step; step == awaited || step == answered {
			paths = append(paths, r.registration(name))
		}
		for _, path := range paths {
			if _, err := os.Lstat(path); err != nil {
				return fmt.Errorf("a socket of driver %q: %w", name, err)
			}
		}
	}
	return nil
}

// Readiness reports whether the drivers of all provisioners that existed when the agent started are served. From then
// on the agent is ready, regardless of later provisioners, and of whether kubelet has called.
type Readiness struct {
	// Filled reports whether the caches are filled.
	Filled func(*http.Request) error

	// Reader reads from the cache.
	Reader client.Reader

	// Registry serves the drivers.
	Registry *Registry

	reached atomic.Bool
}

// Check is a healthz.Checker.
func (c *Readiness) Check(request *http.Request) error {
	if c.reached.Load() {
		return nil
	}
	if err := c.Filled(request); err != nil {
		return err
	}
	missing, err := c.missing(request.Context())
	if err != nil {
		return err
	}
	if missing > 0 {
		return fmt.Errorf("%d drivers are not served yet", missing)
	}
	c.reached.Store(true)
	return nil
}

// missing returns the number of provisioners whose drivers should be served, and are not.
func (c *Readiness) missing(ctx context.Context) (int, error) {
	list := &pavv1.PavProvisionerList{}
	if err := c.Reader.List(ctx, list); err != nil {
		return 0, fmt.Errorf("listing the provisioners in the cache: %w", err)
	}
	c.Registry.mu.Lock()
	defer c.Registry.mu.Unlock()
	missing := 0
	for i := range list.Items {
		p := &list.Items[i]
		if d := c.Registry.drivers[p.Name]; (d == nil || !d.registration.wanted) && p.IsAccepted() {
			missing++
		}
	}
	return missing, nil
}

var registeredMetric = metrics.RegisteredProvisioners.Desc()

// Describe implements prometheus.Collector.
func (*Registry) Describe(descs chan<- *prometheus.Desc) { descs <- registeredMetric }

// Collect implements prometheus.Collector. The driver of /pav is no provisioner's.
func (r *Registry) Collect(to chan<- prometheus.Metric) {
	counts := map[string]float64{metrics.DriverRegistered: 0, metrics.DriverAwaited: 0, metrics.DriverRefused: 0}
	r.mu.Lock()
	for name, d := range r.drivers {
		if name != pavv1.Driver {
			counts[d.state()]++
		}
	}
	r.mu.Unlock()
	for state, count := range counts {
		to <- prometheus.MustNewConstMetric(registeredMetric, prometheus.GaugeValue, count, state)
	}
}

// state returns the registration status of the driver, as a value of the metric's label.
func (d *driver) state() string {
	switch d.registration.answer {
	case kubeletRegistered:
		return metrics.DriverRegistered
	case kubeletRefused:
		return metrics.DriverRefused
	default:
		return metrics.DriverAwaited
	}
}
