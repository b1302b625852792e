package label

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/albertofaria/pav/internal/workflow"
)

// Reconciler labels PersistentVolumes.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
}

// Register adds the reconciler and its watches to the manager.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	unlabelled := predicate.NewPredicateFuncs(func(object client.Object) bool {
		pv, ok := object.(*corev1.PersistentVolume)
		return ok && !reconcile.IsLabelled(pv)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("label").
		For(&corev1.PersistentVolume{}, builder.WithPredicates(unlabelled)).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.unlabelledOf), builder.WithPredicates(accepted)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "label", observability.Volume, nil)).
		Complete(r)
}

// accepted passes PavProvisioners when they become accepted.
var accepted = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return isAccepted(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return isAccepted(e.ObjectNew) && !isAccepted(e.ObjectOld) },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

func isAccepted(object client.Object) bool {
	p, ok := object.(*pavv1.PavProvisioner)
	return ok && p.IsAccepted()
}

// unlabelledOf returns requests for the PersistentVolumes of a PavProvisioner that were there before it.
func (r *Reconciler) unlabelledOf(ctx context.Context, provisioner client.Object) []ctrl.Request {
	pvs := &corev1.PersistentVolumeList{}
	of := client.MatchingFields{reconcile.UnlabelledPVsByDriver: provisioner.GetName()}
	if err := r.Client.List(ctx, pvs, of, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look PersistentVolumes up", observability.Provisioner, provisioner.GetName())
		return nil
	}
	requests := make([]ctrl.Request, len(pvs.Items))
	for i := range pvs.Items {
		requests[i].Name = pvs.Items[i].Name
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pv := &corev1.PersistentVolume{}
	if err := r.Client.Get(ctx, request.NamespacedName, pv); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if reconcile.IsLabelled(pv) {
		return ctrl.Result{}, nil
	}
	provisioner := &pavv1.PavProvisioner{}
	err := r.Client.Get(ctx, types.NamespacedName{Name: pv.Spec.CSI.Driver}, provisioner)
	if apierrors.IsNotFound(err) || err == nil && !provisioner.IsAccepted() {
		return ctrl.Result{}, nil // An event says when it is.
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("getting PavProvisioner %q: %w", pv.Spec.CSI.Driver, err)
	}
	return reconcile.Result(r.labelAll(ctx, reconcile.Storage(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)))
}

// labelAll labels the PersistentVolumes of a storage, the oldest first. Two of them are an error that node agents report;
// where one has the labels, they find no other without. So no newer one may have them before an older one has.
func (r *Reconciler) labelAll(ctx context.Context, storage string) error {
	pvs := &corev1.PersistentVolumeList{}
	if err := r.Client.List(ctx, pvs, client.MatchingFields{reconcile.PVsByStorage: reconcile.Bucket(storage)}); err != nil {
		return fmt.Errorf("looking PersistentVolumes up: %w", err)
	}
	slices.SortFunc(pvs.Items, func(a, b corev1.PersistentVolume) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range pvs.Items {
		if pv := &pvs.Items[i]; reconcile.IsLabelled(pv) || !slices.Contains(reconcile.StoragesOf(pv), storage) {
			continue
		}
		if err := r.label(ctx, &pvs.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// label writes the labels. With the UID, no other PersistentVolume of that name gets them; the driver and handle of one
// cannot be changed.
func (r *Reconciler) label(ctx context.Context, pv *corev1.PersistentVolume) error {
	labels := workflow.VolumeLabels(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pv.UID, "labels": labels}})
	if err != nil {
		return fmt.Errorf("labelling PersistentVolume %q: %w", pv.Name, err)
	}
	if err := r.Client.Patch(ctx, pv, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling PersistentVolume %q: %w", pv.Name, err)
	}
	return nil
}
