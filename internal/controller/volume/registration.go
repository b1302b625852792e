package volume

import (
	"context"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// registrationDelay is for how long after its CSIDriver was created the first PersistentVolumes of a provisioner wait until its
// driver is registered on the nodes. Kubelet reports an error for a pod whose volume has a driver that it does not know yet,
// although it knows the driver a second later. A node whose agent does not work must not stop the provisioner for longer.
const registrationDelay = 10 * time.Second

// gatherRegistration reads how much longer the PersistentVolume waits for nodes to register the driver.
func (r *Reconciler) gatherRegistration(ctx context.Context, driver *storagev1.CSIDriver, o *observation) error {
	left := registrationDelay - o.now.Sub(driver.CreationTimestamp.Time)
	if left <= 0 || !o.pending() || o.volume.Status.Handle == "" {
		return nil
	}
	nodes := &storagev1.CSINodeList{}
	if err := r.Client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("looking up CSINodes: %w", err)
	}
	for i := range nodes.Items {
		if protocol.IsRegistered(&nodes.Items[i], pavv1.Driver) && !protocol.IsRegistered(&nodes.Items[i], driver.Name) {
			o.registeringFor = min(left, registrationDelay) // the clock may be behind
		}
	}
	return nil
}

// ofNewDrivers maps a CSINode to the volumes that may wait for a driver to be registered on it.
func (r *Reconciler) ofNewDrivers(ctx context.Context, object client.Object) []ctrl.Request {
	node, ok := object.(*storagev1.CSINode)
	if !ok {
		return nil
	}
	var requests []ctrl.Request
	for i := range node.Spec.Drivers {
		driver, err := reconcile.Optional(ctx, r.Client, types.NamespacedName{Name: node.Spec.Drivers[i].Name}, &storagev1.CSIDriver{})
		if err == nil && driver != nil && r.Now().Sub(driver.CreationTimestamp.Time) < registrationDelay {
			requests = append(requests, r.unsettled(ctx, driver)...)
		}
	}
	return requests
}
