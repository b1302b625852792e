package provisioner

import (
	"context"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// Reconciler turns PavProvisioners into CSIDrivers.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server, before steps that cannot be undone.
	Live client.Reader

	// Definitions checks definitions.
	Definitions *definition.Checker

	// Now returns the time of the cluster.
	Now func() time.Time

	judged judgments
	nodes  nodes
	pace   pace
}

// Register adds the reconciler and its watches to the manager.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	r.judged, r.pace = judgments{known: map[string]judgment{}, running: make(chan struct{}, judgedAtOnce)}, pace{due: map[string]time.Time{}}
	r.nodes = nodes{known: map[string]int32{}}
	return ctrl.NewControllerManagedBy(mgr).
		Named("provisioner").
		For(&pavv1.PavProvisioner{}).
		Watches(&storagev1.CSIDriver{}, &handler.EnqueueRequestForObject{}). // of the same name
		Watches(&pavv1.PavVolume{}, soon(ofHeld), builder.WithPredicates(countChanges)).
		Watches(&pavv1.PavStage{}, soon(ofHeld), builder.WithPredicates(countChanges)).
		Watches(&pavv1.PavSnapshot{}, soon(ofHeld), builder.WithPredicates(countChanges)).
		Watches(&pavv1.PavBucket{}, soon(ofHeld), builder.WithPredicates(countChanges)).
		Watches(&pavv1.PavBucketAccess{}, soon(ofHeld), builder.WithPredicates(countChanges)).
		Watches(&storagev1.CSINode{}, soon(r.ofNode)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "provisioner", observability.Provisioner, nil)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := &pavv1.PavProvisioner{}
	if err := r.Client.Get(ctx, request.NamespacedName, p); err != nil {
		if apierrors.IsNotFound(err) {
			r.judged.forget(request.Name)
			r.pace.settle(request.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	o, err := r.gather(ctx, p)
	if err != nil {
		return reconcile.Result(err)
	}
	d := decide(o)
	var result ctrl.Result
	if d.action == nothing {
		result, err = r.report(ctx, p, d)
	} else {
		result, err = reconcile.Result(r.act(ctx, o, d.action))
	}
	if err == nil && result.RequeueAfter == 0 && p.DeletionTimestamp == nil {
		result.RequeueAfter = r.judged.wait(p.Name, time.Now())
	}
	return result, err
}

// gather reads from the cache what the decision depends on.
func (r *Reconciler) gather(ctx context.Context, p *pavv1.PavProvisioner) (snapshot, error) {
	o := snapshot{provisioner: p}
	driver := &storagev1.CSIDriver{}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(p), driver); err == nil {
		o.driver = driver
	} else if !apierrors.IsNotFound(err) {
		return o, fmt.Errorf("reading CSIDriver %q: %w", p.Name, err)
	}
	var err error
	if o.counts, err = r.count(ctx, p.Name); err != nil {
		return o, err
	}
	if !p.Spec.HasVolumes() {
		o.counts.registered, o.counts.wanted = 0, 0 // no node is to register it
	}
	if p.DeletionTimestamp == nil {
		if o.mistakes, err = r.judge(ctx, p); err != nil {
			return o, err
		}
	}
	if p.DeletionTimestamp == nil && wantedScope(p) == p.Scope() && p.Spec.HasVolumes() {
		return o, nil
	}
	o.held, err = findHeld(ctx, r.Client, selectors{
		volumes:   client.MatchingFields{reconcile.VolumesByProvisioner: p.Name},
		stages:    client.MatchingFields{reconcile.StagesByProvisioner: p.Name},
		snapshots: client.MatchingFields{reconcile.SnapshotsByProvisioner: p.Name},
		buckets:   client.MatchingFields{reconcile.BucketsByProvisioner: p.Name},
		accesses:  client.MatchingFields{reconcile.AccessesByProvisioner: p.Name},
	})
	return o, err
}

func (r *Reconciler) act(ctx context.Context, o snapshot, a action) error {
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
		return reconcile.ErrStale
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

// release removes the finalizer of the provisioner. That cannot be undone, so the API server is asked, not the cache:
// a volume, a snapshot or the CSIDriver may have been written a moment ago.
func (r *Reconciler) release(ctx context.Context, p *pavv1.PavProvisioner) error {
	left, err := r.heldNow(ctx, p)
	if err != nil {
		return err
	}
	driver := &storagev1.CSIDriver{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(p), driver); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading CSIDriver %q: %w", p.Name, err)
	}
	if left.any() || isToBeDeleted(driver, p) {
		return reconcile.ErrStale
	}
	return r.patchFinalizers(ctx, p, controllerutil.RemoveFinalizer)
}

// report writes the conditions, the scope in force and the counts, if they have changed. If only counts have changed,
// it waits a moment for further changes.
func (r *Reconciler) report(ctx context.Context, p *pavv1.PavProvisioner, d decision) (ctrl.Result, error) {
	changed := p.DeepCopy()
	urgent := false
	for _, condition := range d.conditions {
		condition.ObservedGeneration, condition.LastTransitionTime = p.Generation, metav1.NewTime(r.Now())
		urgent = meta.SetStatusCondition(&changed.Status.Conditions, condition) || urgent
	}
	if d.scope != "" && d.scope != p.Status.StagingScope {
		if err := r.checkNoStages(ctx, p, d.scope); err != nil {
			return reconcile.Result(err)
		}
		changed.Status.StagingScope = d.scope
		urgent = true
	}
	if !d.counts.set(&changed.Status) && !urgent {
		r.pace.settle(p.Name)
		return ctrl.Result{}, nil
	}
	if wait := r.pace.wait(p.Name, countWithin(max(d.counts.registered, d.counts.wanted)), time.Now()); wait > 0 && !urgent {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	changed.Status.ObservedGeneration = p.Generation
	err := r.Client.Status().Patch(ctx, changed, client.MergeFromWithOptions(p, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result(err)
	}
	r.pace.settle(p.Name)
	return ctrl.Result{}, nil
}

// checkNoStages returns ErrStale if the scope is to change, and there are stages that the cache does not have yet. A
// node agent that creates a stage at this moment may still use the former scope, which its PavStage keeps.
func (r *Reconciler) checkNoStages(ctx context.Context, p *pavv1.PavProvisioner, scope pavv1.StagingScope) error {
	if scope == p.Scope() {
		return nil
	}
	left, err := r.heldNow(ctx, p)
	if err == nil && len(left.stages) > 0 {
		err = reconcile.ErrStale
	}
	return err
}
