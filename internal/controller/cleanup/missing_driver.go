package cleanup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// MissingDriverReconciler reports to pods that they wait for a volume of a driver that does not exist.
type MissingDriverReconciler struct {
	// Client reads from the cache.
	Client client.Client

	// Live reads from the API server: pods and CSINodes, which are not in the cache.
	Live client.Reader

	// Events records the events.
	Events record.EventRecorder
}

// Register adds the reconciler and its watch to the manager. PaV's own drivers need no attachment, so
// on most clusters there is nothing to reconcile.
func (r *MissingDriverReconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	couldBeOurs := predicate.NewPredicateFuncs(func(object client.Object) bool {
		attachment, ok := object.(*storagev1.VolumeAttachment)
		return ok && !attachment.Status.Attached && len(validation.IsDNS1123Label(attachment.Spec.Attacher)) == 0
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("attachment").
		For(&storagev1.VolumeAttachment{}, builder.WithPredicates(couldBeOurs)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "attachment", "attachment", nil)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *MissingDriverReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	attachment := &storagev1.VolumeAttachment{}
	if err := r.Client.Get(ctx, request.NamespacedName, attachment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	known, err := r.known(ctx, attachment.Spec.Attacher, attachment.Spec.NodeName)
	if err != nil || known || attachment.Spec.Source.PersistentVolumeName == nil {
		return reconcile.Result(err)
	}
	return reconcile.Result(r.report(ctx, attachment.Spec.Attacher, *attachment.Spec.Source.PersistentVolumeName, attachment.Spec.NodeName))
}

// known reports whether a driver of the name exists, even one that is registered on the node without a CSIDriver.
func (r *MissingDriverReconciler) known(ctx context.Context, driver, node string) (bool, error) {
	for _, object := range []client.Object{&pavv1.PavProvisioner{}, &storagev1.CSIDriver{}} {
		err := r.Live.Get(ctx, types.NamespacedName{Name: driver}, object)
		if err == nil {
			return true, nil
		}
		if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("looking for driver %q: %w", driver, err)
		}
	}
	csiNode := &storagev1.CSINode{}
	if err := r.Live.Get(ctx, types.NamespacedName{Name: node}, csiNode); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting CSINode %q: %w", node, err)
	}
	return protocol.IsRegistered(csiNode, driver), nil
}

// report records an event on the volume's claim and on the pods of the node that use it.
func (r *MissingDriverReconciler) report(ctx context.Context, driver, volume, node string) error {
	pv := &corev1.PersistentVolume{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: volume}, pv); err != nil {
		return client.IgnoreNotFound(err)
	}
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return nil
	}
	pods := &corev1.PodList{}
	if err := r.Live.List(ctx, pods, client.InNamespace(ref.Namespace), client.MatchingFields{"spec.nodeName": node}); err != nil {
		return fmt.Errorf("looking up the pods of claim %q: %w", ref.Namespace+"/"+ref.Name, err)
	}
	const message = "spec.csi.driver of PersistentVolume %q is %q, but there is neither a PavProvisioner nor any other driver of that name; create the PavProvisioner, or correct the PersistentVolume"
	r.Events.Eventf(ref, corev1.EventTypeWarning, protocol.FailedMount, message, volume, driver)
	for i := range pods.Items {
		if protocol.Uses(&pods.Items[i], ref.Name) {
			r.Events.Eventf(&pods.Items[i], corev1.EventTypeWarning, protocol.FailedMount, message, volume, driver)
		}
	}
	return nil
}
