package csi

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// catalogue is the cache of the agent, with one PavProvisioner or none.
type catalogue struct {
	provisioner *pavv1.PavProvisioner
}

// Get implements client.Reader.
func (c *catalogue) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.provisioner == nil || c.provisioner.Name != key.Name {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pavprovisioners"}, key.Name)
	}
	c.provisioner.DeepCopyInto(into.(*pavv1.PavProvisioner))
	return nil
}

// List implements client.Reader.
func (c *catalogue) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed")
}

// registered reconciles the driver, and returns its topology keys. In these tests, they are the version that the driver
// reports.
func registered(t *testing.T, p *provisioners, name string) string {
	t.Helper()
	if _, err := p.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil {
		t.Fatal(err)
	}
	answer, err := version(t, p.registry.socket(name))
	must(t, err)
	return strings.TrimPrefix(answer, name+" ")
}

func TestADriverIsServedAgainWhenItsTopologyKeysChange(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	c := &catalogue{provisioner: &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "driver"}}}
	p := &provisioners{reader: c, registry: r, stages: &stages{}, keys: map[string][]string{}, services: func(name string, keys []string) Services {
		return services(name, strings.Join(keys, "+"))
	}}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Name: "driver"}}
	if _, err := p.Reconcile(t.Context(), request); err != nil || !r.Empty() {
		t.Errorf("a provisioner that is not accepted is registered: %v", err)
	}
	c.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue}}
	set := func(topology string) {
		c.provisioner.Spec.VolumeCreation = &pavv1.VolumeCreation{AccessibleTopology: &pavv1.Template{Raw: []byte(topology)}}
	}

	var got []string
	var servers []*grpc.Server
	for _, topology := range []string{"", `[{"zone": "a"}]`, `[{"zone": "{{ b }}"}]`, `[{"zone": "a", "rack": "b"}]`, `"{{ template }}"`} {
		if topology != "" {
			set(topology)
		}
		got = append(got, registered(t, p, "driver"))
		servers = append(servers, r.drivers["driver"].server)
	}
	if diff := cmp.Diff([]string{"", "zone", "zone", "rack+zone", ""}, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if servers[1] != servers[2] {
		t.Error("it is served again although no key changed")
	}

	c.provisioner = nil
	if _, err := p.Reconcile(t.Context(), request); err != nil || !r.Empty() || len(p.keys) > 0 {
		t.Errorf("it stays when its provisioner is gone: %v", err)
	}
}

// stages simulates the stages of the node.
type stages struct {
	has     bool
	reports int
}

// HasStages implements Stages.
func (s *stages) HasStages(context.Context, string) (bool, error) { return s.has, nil }

// ReportNoProvisioner implements Stages.
func (s *stages) ReportNoProvisioner(context.Context, string) error {
	s.reports++
	return nil
}

// If the finalizer of a PavProvisioner was removed by hand, pods may still use its volumes.
func TestADriverWhoseProvisionerIsGone_IsServedWhileTheNodeHasStagesOfIt(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	c, s := &catalogue{}, &stages{has: true}
	newAgent := func(r *Registry) *provisioners {
		return &provisioners{reader: c, registry: r, stages: s, keys: map[string][]string{}, reported: map[string]bool{},
			services: func(name string, keys []string) Services { return services(name, strings.Join(keys, "+")) }}
	}
	p := newAgent(r)
	must(t, p.register("driver", []string{"zone"}))
	for range 2 {
		if got := registered(t, p, "driver"); got != "zone" {
			t.Errorf("it is served with the topology keys %q", got)
		}
	}
	if s.reports != 1 {
		t.Errorf("reported %d times, want once", s.reports)
	}

	// The next agent finds the driver by its stages.
	r.Close()
	r = newRegistry(t)
	p = newAgent(r)
	if got := registered(t, p, "driver"); got != "" || s.reports != 2 {
		t.Errorf("the next agent serves it with the topology keys %q, and has reported %d times", got, s.reports)
	}

	s.has = false
	if _, err := p.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "driver"}}); err != nil || !r.Empty() {
		t.Errorf("it stays when its last stage is gone: %v", err)
	}
}

func TestADriverThatIsOnlyServed_IsRegisteredLater_WithoutAGap(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	must(t, r.Serve("driver", services("driver", "recorded")))
	wantVersion(t, r.socket("driver"), "driver recorded")
	if _, err := os.Lstat(r.registration("driver")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("kubelet finds it: %v", err)
	}
	if err := r.Alive(nil); err != nil {
		t.Error("it is not alive:", err)
	}
	must(t, r.Register("driver", services("driver", "full")))
	wantVersion(t, r.socket("driver"), "driver full")
	must(t, r.Serve("driver", services("driver", "recorded")))
	wantVersion(t, r.socket("driver"), "driver full")
	if _, err := os.Lstat(r.registration("driver")); err != nil {
		t.Error("kubelet does not find it:", err)
	}
	r.Close()
}

func TestADriverThatCouldNotBeServedAgain_IsTriedAgain(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	p := &provisioners{registry: r, keys: map[string][]string{}, services: func(name string, keys []string) Services {
		return services(name, strings.Join(keys, "+"))
	}}
	must(t, p.register("driver", nil))
	// A socket cannot replace a directory that is not empty.
	must(t, os.MkdirAll(temporaryPath(r.socket("driver"))+"/file", 0o755))
	if err := p.register("driver", []string{"zone"}); err == nil {
		t.Error("a driver that is not served counts as registered")
	}
	must(t, os.RemoveAll(temporaryPath(r.socket("driver"))))
	must(t, p.register("driver", []string{"zone"}))
	wantVersion(t, r.socket("driver"), "driver zone")
}

// If a socket disappears even for a moment, kubelet unregisters the driver, and its pods fail.
func TestRenewing_KeepsThePaths_AndOnlyThoseOfTheDriver(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	must(t, r.Renew("driver", services("driver", "1"))) // One that is not registered yet is registered.
	must(t, r.Register("other", services("other", "1")))
	paths := []string{r.socket("driver"), r.registration("driver")}
	stop, missing := make(chan struct{}), make(chan string, 1)
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, path := range paths {
				if _, err := os.Lstat(path); err != nil {
					missing <- err.Error()
					return
				}
			}
		}
	})
	for range 50 {
		must(t, r.Renew("driver", services("driver", "2")))
		wantVersion(t, r.socket("driver"), "driver 2")
	}
	close(stop)
	watching.Wait()
	select {
	case why := <-missing:
		t.Error(why)
	default:
	}
	wantFiles(t, r, append(paths, r.socket("other"), r.registration("other"))...)
	wantVersion(t, r.socket("other"), "other 1")
}

// If a driver is served again, its calls in progress are canceled, and kubelet repeats them.
func TestRenewing_EndsRunningCalls(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	called := make(chan struct{})
	must(t, r.Register("driver", func(server grpc.ServiceRegistrar) {
		csi.RegisterIdentityServer(server, &waiting{called: called})
	}))
	ended := make(chan error, 1)
	go func() {
		_, err := version(t, r.socket("driver"))
		ended <- err
	}()
	<-called
	must(t, r.Renew("driver", services("driver", "2")))
	if err := <-ended; err == nil {
		t.Error("the call succeeded")
	}
	wantVersion(t, r.socket("driver"), "driver 2")
}

func TestUnregistering_WaitsForRunningCalls(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	called, release := make(chan struct{}), make(chan struct{})
	must(t, r.Register("driver", func(server grpc.ServiceRegistrar) {
		csi.RegisterIdentityServer(server, &slow{called: called, release: release})
	}))
	ended := make(chan error, 1)
	go func() {
		_, err := version(t, r.socket("driver"))
		ended <- err
	}()
	<-called
	gone := make(chan error, 1)
	go func() { gone <- r.Unregister("driver") }()
	deadline := time.Now().Add(time.Minute)
	for _, err := os.Stat(r.socket("driver")); err == nil && time.Now().Before(deadline); _, err = os.Stat(r.socket("driver")) {
		runtime.Gosched()
	}
	close(release)
	must(t, <-ended)
	must(t, <-gone)
}

// slow is a driver whose calls end when the test releases them.
type slow struct {
	csi.UnimplementedIdentityServer
	called, release chan struct{}
}

// GetPluginInfo implements csi.IdentityServer.
func (s *slow) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	close(s.called)
	<-s.release
	return &csi.GetPluginInfoResponse{Name: "driver", VendorVersion: "1"}, nil
}

// waiting is a driver whose calls end when they are canceled.
type waiting struct {
	csi.UnimplementedIdentityServer
	called chan struct{}
}

// GetPluginInfo implements csi.IdentityServer.
func (w *waiting) GetPluginInfo(ctx context.Context, _ *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	close(w.called)
	<-ctx.Done()
	return nil, ctx.Err()
}
