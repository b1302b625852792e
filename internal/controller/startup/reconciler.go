package startup

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// Reconciler removes the taint of new nodes.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server.
	Live client.Reader

	// Now returns the time of the cluster.
	Now func() time.Time
}

// Register adds the reconciler and its watches to the manager. Requests are for nodes.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	tainted := predicate.NewPredicateFuncs(func(object client.Object) bool {
		node, ok := object.(*corev1.Node)
		return ok && isTainted(node)
	})
	driversChange := predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*storagev1.CSINode)
			after, also := e.ObjectNew.(*storagev1.CSINode)
			return ok && also && !equality.Semantic.DeepEqual(before.Spec.Drivers, after.Spec.Drivers)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	// A driver that registers is seen at its CSINode; one that will never be registered is seen here.
	fewerDrivers := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return !isUsable(e.ObjectNew) && isUsable(e.ObjectOld) },
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("startup").
		For(&corev1.Node{}, builder.WithPredicates(tainted)).
		Watches(&storagev1.CSINode{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(driversChange)). // it has the name of its node
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.tainted), builder.WithPredicates(fewerDrivers)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "startup", observability.Node, nil)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cached, node := &corev1.Node{}, &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, cached); err != nil || !isTainted(cached) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// The list of taints is written as a whole, so it must be the one that the API server has.
	if err := r.Live.Get(ctx, request.NamespacedName, node); err != nil || !isTainted(node) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	registered := &storagev1.CSINode{}
	if err := r.Live.Get(ctx, request.NamespacedName, registered); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading CSINode %q: %w", node.Name, err)
	}
	if !isOf(registered, node) {
		registered = &storagev1.CSINode{}
	}
	provisioners := &pavv1.PavProvisionerList{}
	if err := r.Client.List(ctx, provisioners); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing PavProvisioners: %w", err)
	}
	d := decide(node, registered, usable(provisioners.Items), r.Now())
	if !d.remove {
		return ctrl.Result{RequeueAfter: d.after}, nil
	}
	return reconcile.Result(r.untaint(ctx, node, d.missing))
}

// isOf reports whether a CSINode is that of a node. One of a former node of that name may not be deleted yet.
func isOf(registered *storagev1.CSINode, node *corev1.Node) bool {
	return slices.ContainsFunc(registered.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == node.UID })
}

// tainted returns requests for the nodes that have the taint.
func (r *Reconciler) tainted(ctx context.Context, _ client.Object) (requests []ctrl.Request) {
	nodes := &corev1.NodeList{}
	if err := r.Client.List(ctx, nodes); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list nodes")
		return nil
	}
	for i := range nodes.Items {
		if isTainted(&nodes.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&nodes.Items[i])})
		}
	}
	return requests
}

// isUsable reports whether node agents register the driver of a PavProvisioner.
func isUsable(object client.Object) bool {
	p, ok := object.(*pavv1.PavProvisioner)
	return ok && !meta.IsStatusConditionFalse(p.Status.Conditions, pavv1.ProvisionerReady)
}

// usable returns the drivers that node agents register, also those of new PavProvisioners that are not decided on yet.
func usable(provisioners []pavv1.PavProvisioner) (drivers []string) {
	for i := range provisioners {
		if isUsable(&provisioners[i]) {
			drivers = append(drivers, provisioners[i].Name)
		}
	}
	return drivers
}

// untaint removes the taint. Missing are the drivers that are not registered on the node.
func (r *Reconciler) untaint(ctx context.Context, node *corev1.Node, missing []string) error {
	before := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, isNotReady)
	if err := r.Client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("removing the taint %s of Node %q: %w", pavv1.NotReadyTaint, node.Name, err)
	}
	log := ctrl.LoggerFrom(ctx)
	if len(missing) > 0 {
		log.Info("removed the startup taint, although drivers are not registered", "drivers", missing)
		return nil
	}
	log.Info("removed the startup taint")
	return nil
}
