package csi

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

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

// keyed returns the services of a driver whose version are its topology keys.
func keyed(name string, keys []string) Services {
	return ForProvisioner(name, "node1", strings.Join(keys, "+"), nil, Topology{Keys: keys})
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
	p := &provisioners{reader: c, registry: r, stages: &stages{}, services: keyed}
	request := ctrl.Request{NamespacedName: client.ObjectKey{Name: "driver"}}
	if _, err := p.Reconcile(t.Context(), request); err != nil || !r.Empty() {
		t.Errorf("a provisioner that is not accepted is registered: %v", err)
	}
	c.provisioner.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue}}
	set := func(topology string) {
		c.provisioner.Spec.VolumeCreation = &pavv1.VolumeCreation{AccessibleTopology: &pavv1.Template{Raw: []byte(topology)}}
	}

	var got []string
	var served []*Services
	for _, topology := range []string{"", `[{"zone": "a"}]`, `[{"zone": "{{ b }}"}]`, `[{"zone": "a", "rack": "b"}]`, `"{{ template }}"`} {
		if topology != "" {
			set(topology)
		}
		got = append(got, registered(t, p, "driver"))
		served = append(served, r.drivers["driver"].services.Load())
	}
	if diff := cmp.Diff([]string{"", "zone", "zone", "rack+zone", ""}, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if served[1] != served[2] {
		t.Error("it is served again although no key changed")
	}

	c.provisioner = nil
	if _, err := p.Reconcile(t.Context(), request); err != nil || !r.Empty() {
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
		return &provisioners{reader: c, registry: r, stages: s, reported: map[string]bool{}, services: keyed}
	}
	p := newAgent(r)
	register(t, r, "driver", keyed("driver", []string{"zone"}))
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
	register(t, r, "driver", services("driver", "full"))
	wantVersion(t, r.socket("driver"), "driver full")
	must(t, r.Serve("driver", services("driver", "recorded")))
	wantVersion(t, r.socket("driver"), "driver full")
	if _, err := os.Lstat(r.registration("driver")); err != nil {
		t.Error("kubelet does not find it:", err)
	}
	r.Close()
}

// If a socket disappears even for a moment, kubelet unregisters the driver, and its pods fail.
func TestChangedTopologyKeys_KeepThePaths_AndOnlyThoseOfTheDriver(t *testing.T) {
	kubelet(t)
	r := newRegistry(t)
	register(t, r, "driver", keyed("driver", nil))
	register(t, r, "other", services("other", "1"))
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
		for _, key := range []string{"zone", "rack"} {
			register(t, r, "driver", keyed("driver", []string{key}))
			wantVersion(t, r.socket("driver"), "driver "+key)
		}
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

func TestAllDriversAreServed_BeforeKubeletIsToldOfAny(t *testing.T) {
	k := newKubelet(t)
	k.run(t)
	a := k.newAgent(t)
	accepted := []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: metav1.ConditionTrue}}
	cache := list{items: []pavv1.PavProvisioner{{ObjectMeta: metav1.ObjectMeta{Name: "not-accepted-yet"}}}}
	drivers, want := many(30)
	for name := range drivers {
		cache.items = append(cache.items, pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: pavv1.PavProvisionerStatus{Conditions: accepted}})
	}
	deleted, err := listenOn(a.socket("deleted"))
	must(t, err)
	must(t, unix.Close(deleted))
	must(t, a.link("deleted"))
	must(t, a.Serve("recorded", services("recorded", "1")))
	p := &provisioners{reader: cache, registry: a.Registry, services: keyed, served: make(chan event.GenericEvent)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.register(ctx) }()

	reconciled := map[string]bool{happens(t, "a provisioner is to be reconciled", p.served).Object.GetName(): true}
	serving := map[string]bool{a.socket("recorded"): true}
	for name := range drivers {
		wantVersion(t, a.socket(name), name+" ")
		serving[a.socket(name)] = true
	}
	if diff := cmp.Diff(serving, files(t, a.Registry)); diff != "" {
		t.Errorf("files before kubelet is told of any driver (-want +got):\n%s", diff)
	}
	for range len(drivers) {
		reconciled[happens(t, "a provisioner is to be reconciled", p.served).Object.GetName()] = true
	}
	if len(reconciled) != len(drivers)+1 || !reconciled["recorded"] {
		t.Errorf("to be reconciled are %v", reconciled)
	}
	a.settles(t, want)
	cancel()
	must(t, happens(t, "it ends", ended))
}
