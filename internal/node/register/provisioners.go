package register

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/csi"
	"github.com/albertofaria/pav/internal/observe"
	"github.com/albertofaria/pav/internal/watches"
)

// WatchProvisioners keeps a driver registered for every PavProvisioner that the controller agent has
// accepted; a name that another driver has is none of ours. A driver stays until its PavProvisioner
// is gone, so that volumes can be unstaged while that is being deleted. The services are made for the
// topology keys that the PavProvisioner names, and made anew when these change.
func WatchProvisioners(mgr manager.Manager, registry *Registry, services func(name string, topologyKeys []string) csi.Services) error {
	p := &provisioners{reader: mgr.GetClient(), registry: registry, services: services, keys: map[string][]string{}}
	if err := mgr.Add(manager.RunnableFunc(p.prune)); err != nil {
		return fmt.Errorf("watching provisioners: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("driver").
		For(&pavv1.PavProvisioner{}, builder.WithPredicates(watches.MoreThanCounts)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		WithLogConstructor(observe.Requests(mgr.GetLogger(), "driver", observe.Provisioner, nil)).
		Complete(p)
}

type provisioners struct {
	reader   client.Reader
	registry *Registry
	services func(name string, topologyKeys []string) csi.Services

	mu   sync.Mutex
	keys map[string][]string // by name of a driver that is registered
}

// Reconcile implements reconcile.Reconciler.
func (p *provisioners) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	provisioner := &pavv1.PavProvisioner{}
	err := p.reader.Get(ctx, request.NamespacedName, provisioner)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, p.unregister(request.Name)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting PavProvisioner %q: %w", request.Name, err)
	}
	if !servable(provisioner) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, p.register(request.Name, provisioner.TopologyKeys())
}

// servable says whether the controller agent has looked at a provisioner, and let it have its name.
func servable(p *pavv1.PavProvisioner) bool {
	return meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerAccepted) != nil && p.Refusal() == ""
}

// register must not be called for one name at once, as a controller never does.
func (p *provisioners) register(name string, keys []string) error {
	p.mu.Lock()
	known, registered := p.keys[name]
	p.mu.Unlock()
	register := p.registry.Register
	if registered && !slices.Equal(known, keys) {
		register = p.registry.Renew // Kubelet asks for a driver's topology when it is registered only.
	}
	if err := register(name, p.services(name, keys)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[name] = keys
	return nil
}

func (p *provisioners) unregister(name string) error {
	p.mu.Lock()
	delete(p.keys, name)
	p.mu.Unlock()
	return p.registry.Unregister(name)
}

// prune removes the sockets of drivers whose PavProvisioner went while no agent was there. It runs
// after the cache has filled.
func (p *provisioners) prune(ctx context.Context) error {
	list := &pavv1.PavProvisionerList{}
	if err := p.reader.List(ctx, list); err != nil {
		return fmt.Errorf("listing the provisioners in the cache: %w", err)
	}
	names := []string{pavv1.Driver}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return p.registry.Prune(names)
}
