package provisioner

import (
	"context"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/index"
	"github.com/albertofaria/pav/internal/controller/retry"
)

// Reconciler turns PavProvisioners into CSIDrivers.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server, for decisions that cannot be taken back.
	Live client.Reader
}

// Register adds the reconciler and its watches to the manager.
func (r *Reconciler) Register(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("provisioner").
		For(&pavv1.PavProvisioner{}).
		Watches(&storagev1.CSIDriver{}, &handler.EnqueueRequestForObject{}). // of the same name
		Watches(&pavv1.PavVolume{}, handler.EnqueueRequestsFromMapFunc(ofVolume), builder.WithPredicates(holdChanges)).
		Watches(&pavv1.PavStage{}, handler.EnqueueRequestsFromMapFunc(ofStage), builder.WithPredicates(holdChanges)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: retry.Backoff()}).
		Complete(r)
}

// holdChanges lets through what can change whether an object holds its provisioner.
var holdChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
}}

func ofVolume(_ context.Context, object client.Object) []reconcile.Request {
	volume, ok := object.(*pavv1.PavVolume)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: volume.Spec.Provisioner}}}
}

func ofStage(_ context.Context, object client.Object) []reconcile.Request {
	stage, ok := object.(*pavv1.PavStage)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: stage.Spec.Provisioner}}}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	p := &pavv1.PavProvisioner{}
	if err := r.Client.Get(ctx, request.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	o, err := r.gather(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	d := decide(o)
	if d.action == nothing {
		return retry.Result(r.report(ctx, p, d))
	}
	return retry.Result(r.act(ctx, o, d.action))
}

// gather collects from the cache what the decision depends on.
func (r *Reconciler) gather(ctx context.Context, p *pavv1.PavProvisioner) (observed, error) {
	o := observed{provisioner: p}
	driver := &storagev1.CSIDriver{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(p), driver); err == nil {
		o.driver = driver
	} else if !apierrors.IsNotFound(err) {
		return o, fmt.Errorf("reading CSIDriver %q: %w", p.Name, err)
	}
	if p.DeletionTimestamp == nil && wantedScope(p) == p.Scope() {
		return o, nil
	}
	var err error
	o.volumes, o.stages, err = holders(ctx, r.Client,
		client.MatchingFields{index.VolumesByProvisioner: p.Name}, client.MatchingFields{index.StagesByProvisioner: p.Name})
	return o, err
}

// holders returns the names of the selected PavVolumes and PavStages that have PaV's finalizer. A
// retained volume and the record of a failed stage have none and hold nothing.
func holders(ctx context.Context, reader client.Reader, volumes, stages client.ListOption) (volumeNames, stageNames []string, err error) {
	volumeList := &pavv1.PavVolumeList{}
	if err := reader.List(ctx, volumeList, volumes); err != nil {
		return nil, nil, fmt.Errorf("looking up PavVolumes: %w", err)
	}
	for i := range volumeList.Items {
		if v := &volumeList.Items[i]; controllerutil.ContainsFinalizer(v, pavv1.VolumeFinalizer) {
			volumeNames = append(volumeNames, v.Name)
		}
	}
	stageList := &pavv1.PavStageList{}
	if err := reader.List(ctx, stageList, stages); err != nil {
		return nil, nil, fmt.Errorf("looking up PavStages: %w", err)
	}
	for i := range stageList.Items {
		if s := &stageList.Items[i]; controllerutil.ContainsFinalizer(s, pavv1.StageFinalizer) {
			stageNames = append(stageNames, s.Name)
		}
	}
	return volumeNames, stageNames, nil
}

func (r *Reconciler) act(ctx context.Context, o observed, a action) error {
	switch a {
	case nothing:
		return nil
	case addFinalizer:
		return r.patchFinalizers(ctx, o.provisioner, controllerutil.AddFinalizer)
	case createDriver:
		return r.createDriver(ctx, o.provisioner)
	case updateDriver:
		return r.updateDriver(ctx, o.driver, o.provisioner)
	case replaceDriver, deleteDriver:
		return r.deleteDriver(ctx, o.driver)
	case release:
		return r.release(ctx, o.provisioner)
	}
	return fmt.Errorf("no such action: %q", a)
}

func (r *Reconciler) patchFinalizers(ctx context.Context, p *pavv1.PavProvisioner, change func(client.Object, string) bool) error {
	changed := p.DeepCopy()
	change(changed, pavv1.ProvisionerFinalizer)
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{}))
	return client.IgnoreNotFound(err)
}

func (r *Reconciler) createDriver(ctx context.Context, p *pavv1.PavProvisioner) error {
	if err := r.Client.Create(ctx, driverFor(p)); apierrors.IsAlreadyExists(err) {
		return retry.ErrStale
	} else if err != nil {
		return fmt.Errorf("creating CSIDriver %q: %w", p.Name, err)
	}
	return nil
}

func (r *Reconciler) updateDriver(ctx context.Context, driver *storagev1.CSIDriver, p *pavv1.PavProvisioner) error {
	changed := driver.DeepCopy()
	setSpec(&changed.Spec, p)
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(driver, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsInvalid(err) {
		return r.deleteDriver(ctx, driver) // some of its fields cannot change: the next pass creates it
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating CSIDriver %q: %w", driver.Name, err)
	}
	return nil
}

func (r *Reconciler) deleteDriver(ctx context.Context, driver *storagev1.CSIDriver) error {
	err := r.Client.Delete(ctx, driver, client.Preconditions{UID: &driver.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting CSIDriver %q: %w", driver.Name, err)
	}
	return nil
}

// release lets the provisioner go. That cannot be taken back, so the API server is asked, not the
// cache: a volume may have been written a moment ago.
func (r *Reconciler) release(ctx context.Context, p *pavv1.PavProvisioner) error {
	volumes, stages, err := r.holdersNow(ctx, p)
	if err != nil {
		return err
	}
	if len(volumes)+len(stages) > 0 {
		return retry.ErrStale
	}
	return r.patchFinalizers(ctx, p, controllerutil.RemoveFinalizer)
}

// holdersNow returns the names of the provisioner's PavVolumes and PavStages that the API server has, and that have PaV's finalizer.
func (r *Reconciler) holdersNow(ctx context.Context, p *pavv1.PavProvisioner) (volumes, stages []string, err error) {
	selector := client.MatchingLabels{pavv1.ProvisionerLabel: p.Name}
	return holders(ctx, r.Live, selector, selector)
}

// report writes the conditions and the scope in force, if they have changed.
func (r *Reconciler) report(ctx context.Context, p *pavv1.PavProvisioner, d decision) error {
	changed := p.DeepCopy()
	dirty := false
	for _, condition := range d.conditions {
		condition.ObservedGeneration = p.Generation
		dirty = meta.SetStatusCondition(&changed.Status.Conditions, condition) || dirty
	}
	if d.scope != "" && d.scope != p.Status.StagingScope {
		if err := r.checkNoStages(ctx, p, d.scope); err != nil {
			return err
		}
		changed.Status.StagingScope = d.scope
		dirty = true
	}
	if !dirty {
		return nil
	}
	changed.Status.ObservedGeneration = p.Generation
	err := r.Client.Status().Patch(ctx, changed, client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{}))
	return client.IgnoreNotFound(err)
}

// checkNoStages returns ErrStale where the scope is to become another one, and there are stages that
// the cache does not have yet. A node agent that begins a stage at this moment may still do so in the
// former scope, which its PavStage keeps.
func (r *Reconciler) checkNoStages(ctx context.Context, p *pavv1.PavProvisioner, scope pavv1.StagingScope) error {
	if scope == p.Scope() {
		return nil
	}
	_, stages, err := r.holdersNow(ctx, p)
	if err == nil && len(stages) > 0 {
		err = retry.ErrStale
	}
	return err
}
