package csi

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// WatchPavDriver keeps the driver of /pav registered while its CSIDriver exists. When PaV is uninstalled, the
// CSIDriver is deleted, and the agent removes the sockets. The manager's cache of CSIDrivers must have only this one.
func WatchPavDriver(mgr manager.Manager, registry *Registry, services Services) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("pav-driver").
		For(&storagev1.CSIDriver{}).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "pav-driver", observability.Provisioner, nil)).
		Complete(&pavDriver{reader: mgr.GetClient(), registry: registry, services: services})
}

type pavDriver struct {
	reader   client.Reader
	registry *Registry
	services Services
}

// Reconcile implements reconcile.Reconciler.
func (p *pavDriver) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	err := p.reader.Get(ctx, client.ObjectKey{Name: pavv1.Driver}, &storagev1.CSIDriver{})
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, p.registry.Unregister(pavv1.Driver)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("getting CSIDriver %q: %w", request.Name, err)
	}
	return ctrl.Result{}, p.registry.Register(pavv1.Driver, p.services)
}
