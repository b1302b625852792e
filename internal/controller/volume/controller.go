package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/index"
	"github.com/albertofaria/pav/internal/controller/protocol"
	"github.com/albertofaria/pav/internal/controller/retry"
	"github.com/albertofaria/pav/internal/template"
)

// Reconciler takes volumes through their life.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: templates see what it has, and nothing is forgotten on a cache's word.
	Live client.Reader

	// Events records events on claims and PersistentVolumes.
	Events record.EventRecorder

	// Templates evaluates the fields of provisioners.
	Templates *template.Evaluator

	handles handles
}

// Register adds the reconciler and its watches to the manager.
func (r *Reconciler) Register(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("volume").
		For(&pavv1.PavVolume{}, builder.WithPredicates(moreThanConditions)).
		Watches(&corev1.PersistentVolume{}, &handler.EnqueueRequestForObject{}). // of the same name
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(ofClaim)).
		Watches(&pavv1.PavStage{}, handler.EnqueueRequestsFromMapFunc(ofStage)).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.unsettled)).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(r.unsettled)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: retry.Backoff()}).
		Complete(r)
}

// moreThanConditions lets through all updates but those of conditions: what the reconciler says of
// a failed attempt is no reason for the next one.
var moreThanConditions = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.DeepCopyObject().(*pavv1.PavVolume)
	after, also := e.ObjectNew.(*pavv1.PavVolume)
	if !ok || !also {
		return true
	}
	before.ResourceVersion = after.ResourceVersion
	before.Status.Conditions = after.Status.Conditions
	before.Status.ObservedGeneration = after.Status.ObservedGeneration
	return !equality.Semantic.DeepEqual(before, after)
}}

func named(name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

func ofClaim(_ context.Context, object client.Object) []reconcile.Request {
	return named(protocol.VolumeName(object.GetUID()))
}

func ofStage(_ context.Context, object client.Object) []reconcile.Request {
	stage, ok := object.(*pavv1.PavStage)
	if !ok {
		return nil
	}
	return named(stage.Spec.VolumeName)
}

// unsettled maps a PavProvisioner or its CSIDriver to the volumes that may wait for it.
func (r *Reconciler) unsettled(ctx context.Context, object client.Object) []reconcile.Request {
	volumes := &pavv1.PavVolumeList{}
	if err := r.Client.List(ctx, volumes, client.MatchingFields{index.VolumesByProvisioner: object.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look volumes up", "provisioner", object.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range volumes.Items {
		if phase := volumes.Items[i].Status.Phase; phase != pavv1.VolumeReady && phase != pavv1.VolumeRetained {
			requests = append(requests, named(volumes.Items[i].Name)...)
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	volume := &pavv1.PavVolume{}
	if err := r.Client.Get(ctx, request.NamespacedName, volume); apierrors.IsNotFound(err) {
		r.handles.release(request.Name)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if volume.Status.Handle != "" {
		r.handles.release(request.Name) // the index has it now
	}
	o, err := r.gather(ctx, volume)
	if err != nil {
		return ctrl.Result{}, err
	}
	return retry.Result(r.act(ctx, o, decide(o)))
}

// gather collects from the cache what the decision depends on.
func (r *Reconciler) gather(ctx context.Context, volume *pavv1.PavVolume) (observed, error) {
	o := observed{volume: volume}
	var err error
	if o.provisioner, err = optional(ctx, r.Client, types.NamespacedName{Name: volume.Spec.Provisioner}, &pavv1.PavProvisioner{}); err != nil {
		return o, err
	}
	driver, err := optional(ctx, r.Client, types.NamespacedName{Name: volume.Spec.Provisioner}, &storagev1.CSIDriver{})
	if err != nil {
		return o, err
	}
	o.registered = driver != nil && driver.DeletionTimestamp == nil && o.provisioner != nil && metav1.IsControlledBy(driver, o.provisioner)
	if o.pv, err = optional(ctx, r.Client, types.NamespacedName{Name: volume.Name}, &corev1.PersistentVolume{}); err != nil {
		return o, err
	}
	claim, err := optional(ctx, r.Client, claimKey(volume), &corev1.PersistentVolumeClaim{})
	if err != nil {
		return o, err
	}
	o.claim = stateOf(claim, volume)
	o.holders, err = holders(ctx, r.Client, client.MatchingFields{index.StagesByVolume: volume.Name})
	return o, err
}

// holders returns the nodes whose stages keep the volume from being deleted.
func holders(ctx context.Context, reader client.Reader, selection client.ListOption) ([]string, error) {
	stages := &pavv1.PavStageList{}
	if err := reader.List(ctx, stages, selection); err != nil {
		return nil, fmt.Errorf("looking up PavStages: %w", err)
	}
	var names []string
	for i := range stages.Items {
		if s := &stages.Items[i]; holds(s) {
			names = append(names, s.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func claimKey(volume *pavv1.PavVolume) types.NamespacedName {
	return types.NamespacedName{Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name}
}

// optional returns the object of the key, or nil where there is none.
func optional[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, object T) (T, error) {
	var none T
	err := reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %T %q: %w", object, key.Name, err)
	}
	return object, nil
}

// act takes a step.
func (r *Reconciler) act(ctx context.Context, o observed, d decision) error {
	switch d.step {
	case stepDone:
		return nil
	case stepWait:
		return r.wait(ctx, o, d)
	case stepFail:
		return r.fail(ctx, o, d)
	case stepAlign:
		return r.align(ctx, o)
	case stepProvision:
		return r.provision(ctx, o)
	case stepWritePV:
		return r.writePV(ctx, o)
	case stepMarkReady:
		return r.markReady(ctx, o)
	case stepMarkDeleting:
		return r.markPhase(ctx, o, pavv1.VolumeDeleting)
	case stepDeletePV:
		return r.deletePV(ctx, o)
	case stepRetain:
		return r.markPhase(ctx, o, pavv1.VolumeRetained)
	case stepForget:
		return r.forget(ctx, o)
	}
	return fmt.Errorf("no such step: %q", d.step)
}
