package csi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability/metrics"
)

func TestAlive_AsLongAsTheSocketsAreThere(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	must(t, r.Alive(nil))
	register(t, r, "driver", services("driver", "1"))
	must(t, r.Alive(nil))
	must(t, os.Remove(r.registration("driver")))
	if r.Alive(nil) == nil {
		t.Error("a socket is gone, and the agent is taken to be well")
	}
	must(t, r.Unregister("driver"))
	must(t, r.Alive(nil))
}

// list is a cache of provisioners.
type list struct {
	client.Reader
	items []pavv1.PavProvisioner
}

// List implements client.Reader.
func (l list) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*pavv1.PavProvisionerList).Items = l.items
	return nil
}

func TestReadiness_WaitsForTheCachesAndTheFirstProvisioners(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	accepted := []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue}}
	filled := errors.New("not yet")
	c := &Readiness{Filled: func(*http.Request) error { return filled }, Registry: r, Reader: list{items: []pavv1.PavProvisioner{
		{ObjectMeta: metav1.ObjectMeta{Name: "driver"}, Status: pavv1.PavProvisionerStatus{Conditions: accepted}},
		{ObjectMeta: metav1.ObjectMeta{Name: "not-accepted-yet"}},
	}}}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
	if err := c.Check(request); !errors.Is(err, filled) {
		t.Errorf("before the caches have filled: %v", err)
	}
	filled = nil
	if c.Check(request) == nil {
		t.Error("it is ready without the driver")
	}
	register(t, r, "driver", services("driver", "1"))
	must(t, c.Check(request))
	must(t, r.Unregister("driver"))
	must(t, c.Check(request))
}

func TestMetrics_HaveKubeletsRegistrationStatusOfEachDriver(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	for _, name := range []string{pavv1.Driver, "awaited", "registered", "refused"} {
		register(t, r, name, services(name, "1"))
	}
	for name, is := range map[string]bool{"registered": true, "refused": false} {
		notify(t, r, name, is)
	}
	must(t, metrics.Agrees(r, metrics.Node))
	registry := prometheus.NewPedanticRegistry()
	must(t, registry.Register(r))
	families, err := registry.Gather()
	must(t, err)
	got := map[string]float64{}
	for _, series := range families[0].GetMetric() {
		got[series.GetLabel()[0].GetValue()] = series.GetGauge().GetValue()
	}
	if diff := cmp.Diff(map[string]float64{"registered": 1, "refused": 1, "awaited": 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
