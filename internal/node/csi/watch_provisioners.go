package csi

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// WatchProvisioners keeps a driver registered for every PavProvisioner that the controller agent has accepted, but
// not for names of other drivers. A driver stays until its PavProvisioner is gone, so that volumes can be unstaged
// while the PavProvisioner is being deleted. If the PavProvisioner was removed by force, or has no volumes any more, the
// driver stays until the node has no stage of it. The services depend on the PavProvisioner's topology keys, and are replaced when these
// change.
func WatchProvisioners(mgr manager.Manager, registry *Registry, stages Stages, services func(name string, topologyKeys []string) Services) error {
	p := &provisioners{
		reader: mgr.GetClient(), registry: registry, stages: stages, services: services,
		served: make(chan event.GenericEvent), reported: map[string]bool{},
	}
	if err := mgr.Add(manager.RunnableFunc(p.register)); err != nil {
		return fmt.Errorf("watching provisioners: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("driver").
		For(&pavv1.PavProvisioner{}, builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		WatchesMetadata(&pavv1.PavStage{}, handler.EnqueueRequestsFromMapFunc(ofStage), builder.WithPredicates(ignoreUpdates)).
		WatchesRawSource(source.Channel(p.served, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "driver", observability.Provisioner, nil)).
		Complete(p)
}

// Stages looks up the stages of the node.
type Stages interface {
	// HasStages reports whether the node has a stage of a provisioner.
	HasStages(ctx context.Context, provisioner string) (bool, error)

	// ReportNoProvisioner records on the stages of a provisioner, and on their claims, that it is gone.
	ReportNoProvisioner(ctx context.Context, provisioner string) error
}

// ofStage returns the provisioner of a PavStage of this node.
func ofStage(_ context.Context, stage client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: stage.GetLabels()[pavv1.ProvisionerLabel]}}}
}

// ignoreUpdates passes the creation and deletion of objects.
var ignoreUpdates = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

type provisioners struct {
	reader   client.Reader
	registry *Registry
	stages   Stages
	services func(name string, topologyKeys []string) Services

	// served has the provisioners whose drivers were served before they were reconciled.
	served chan event.GenericEvent

	mu       sync.Mutex
	reported map[string]bool // provisioners that are reported as gone
}

// Reconcile implements reconcile.Reconciler.
func (p *provisioners) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	provisioner := &pavv1.PavProvisioner{}
	err := p.reader.Get(ctx, request.NamespacedName, provisioner)
	if apierrors.IsNotFound(err) {
		return p.withoutProvisioner(ctx, request.Name)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("getting PavProvisioner %q: %w", request.Name, err)
	}
	p.noteReported(request.Name, false)
	if !provisioner.IsAccepted() {
		return ctrl.Result{}, nil
	}
	if !provisioner.Spec.HasVolumes() {
		// The end of a stage is an event, and brings the next pass.
		has, err := p.stages.HasStages(ctx, request.Name)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !has {
			return ctrl.Result{}, p.registry.Unregister(request.Name)
		}
	}
	return ctrl.Result{}, p.registry.Register(request.Name, p.services(request.Name, provisioner.TopologyKeys()))
}

// withoutProvisioner unregisters the driver of a PavProvisioner that is gone, unless the node has a stage of it, as
// after its finalizer was removed by hand: pods must be able to end, and their volumes be unmounted.
func (p *provisioners) withoutProvisioner(ctx context.Context, name string) (ctrl.Result, error) {
	has, err := p.stages.HasStages(ctx, name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !has {
		p.noteReported(name, false)
		return ctrl.Result{}, p.registry.Unregister(name)
	}
	p.mu.Lock()
	reported := p.reported[name]
	p.mu.Unlock()
	if err := p.registry.Register(name, p.services(name, p.registry.TopologyKeys(name))); err != nil {
		return ctrl.Result{}, err
	}
	if !reported {
		if err := p.stages.ReportNoProvisioner(ctx, name); err != nil {
			return ctrl.Result{}, err
		}
		p.noteReported(name, true)
	}
	// The end of a stage whose PavStage was removed by force is not an event.
	return ctrl.Result{RequeueAfter: recheckInterval}, nil
}

// recheckInterval is how often it is checked whether the last stage of a deleted provisioner is gone.
const recheckInterval = time.Minute

func (p *provisioners) noteReported(name string, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.reported, name); is {
		p.reported[name] = true
	}
}

// register serves the drivers of all provisioners that there are, and then has the Registry register them with kubelet
// until ctx ends: kubelet may call any driver before the last one is registered. It removes the sockets of drivers whose
// PavProvisioner was deleted while no agent was running, unless the node has stages of them. It runs after the cache is
// filled.
func (p *provisioners) register(ctx context.Context) error {
	list := &pavv1.PavProvisionerList{}
	if err := p.reader.List(ctx, list); err != nil {
		return fmt.Errorf("listing the provisioners in the cache: %w", err)
	}
	names := []string{pavv1.Driver}
	for i := range list.Items {
		provisioner := &list.Items[i]
		if !provisioner.Spec.HasVolumes() {
			continue // Reconcile looks for stages that are left
		}
		names = append(names, provisioner.Name)
		if provisioner.IsAccepted() {
			// Reconcile repeats it, and returns its error.
			_ = p.registry.Register(provisioner.Name, p.services(provisioner.Name, provisioner.TopologyKeys()))
		}
	}
	if err := p.registry.Prune(names); err != nil {
		return err
	}
	// The cache may have changed since it was listed, and some drivers are only recorded on the node.
	for _, served := range p.registry.Names() {
		if served == pavv1.Driver {
			continue
		}
		select {
		case p.served <- event.GenericEvent{Object: &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: served}}}:
		case <-ctx.Done():
		}
	}
	return p.registry.Run(ctx)
}
