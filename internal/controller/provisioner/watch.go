package provisioner

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// together is how long a provisioner's pass waits for more events of its volumes, stages and nodes:
// a pass counts them all.
const together = 200 * time.Millisecond

// soon enqueues the provisioners that an event is about. Before is nil for an object that has come, and after
// for one that has gone.
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

// ofHeld returns the provisioner of a PavVolume or a PavStage, which never changes.
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
	}
	return nil
}

// ofNode returns the drivers that a node has more or less than before. PaV's own is of interest to all
// provisioners. It must be called for every event of CSINodes, in their order.
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

// countChanges lets through what can change whether an object holds its provisioner, and how it counts.
var countChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) || isFailing(e.ObjectOld) != isFailing(e.ObjectNew)
}}

// isFailing reports whether something of a volume or a stage has failed, and is tried again or waits for somebody.
func isFailing(object client.Object) bool {
	switch o := object.(type) {
	case *pavv1.PavVolume:
		return o.Status.Phase != pavv1.VolumeRetained && (o.Status.Failure != nil || o.Status.DeletionFailure != nil)
	case *pavv1.PavStage:
		return o.Status.StagingFailure != nil || o.Status.UnstagingFailure != nil ||
			meta.IsStatusConditionTrue(o.Status.Conditions, pavv1.StageDegraded)
	}
	return false
}
