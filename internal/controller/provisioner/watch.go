package provisioner

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// together is how long a provisioner's pass waits for further events of its volumes, stages, snapshots and nodes: a pass counts
// all of them.
const together = 200 * time.Millisecond

// soon enqueues the provisioners of an event. Before is nil for a new object, and after for a deleted one.
func soon(of func(ctx context.Context, before, after client.Object) []string) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(ctx context.Context, q queue, before, after client.Object) {
		for _, name := range of(ctx, before, after) {
			q.AddAfter(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}, together)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, nil) },
	}
}

// ofHeld returns the provisioner of a record, which never changes.
func ofHeld(_ context.Context, before, after client.Object) []string {
	object := after
	if object == nil {
		object = before
	}
	switch o := object.(type) {
	case *pavv1.PavVolume:
		return []string{o.Spec.Provisioner}
	case *pavv1.PavStage:
		return []string{o.Spec.Provisioner}
	case *pavv1.PavSnapshot:
		return []string{o.Spec.Provisioner}
	case *pavv1.PavBucket:
		return []string{o.Spec.Provisioner}
	case *pavv1.PavBucketAccess:
		return []string{o.Spec.Provisioner}
	}
	return nil
}

// ofNode returns the drivers that were added to a node or removed from it. A change of PaV's own driver concerns all
// provisioners. It must be called for every event of CSINodes, in order.
func (r *Reconciler) ofNode(ctx context.Context, before, after client.Object) []string {
	names := r.nodes.change(before, after)
	if !slices.Contains(names, pavv1.Driver) {
		return names
	}
	all := &pavv1.PavProvisionerList{}
	if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look provisioners up")
		return names
	}
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names
}

// countChanges passes updates that can change whether an object has PaV's finalizer, and how it is counted.
var countChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) || isFailing(e.ObjectOld) != isFailing(e.ObjectNew)
}}

// isFailing reports whether a workflow of a volume, stage or snapshot has failed, and is retried or waits for the administrator.
func isFailing(object runtime.Object) bool {
	switch o := object.(type) {
	case *pavv1.PavVolume:
		return o.Status.Phase != pavv1.VolumeRetained && len(o.Status.Failures()) > 0
	case *pavv1.PavStage:
		return o.Status.StagingFailure != nil || o.Status.UnstagingFailure != nil ||
			meta.IsStatusConditionTrue(o.Status.Conditions, pavv1.StageDegraded)
	case *pavv1.PavSnapshot:
		return o.Status.Phase != pavv1.SnapshotRetained && len(o.Status.Failures()) > 0
	}
	return false
}
