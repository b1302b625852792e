package cosi2

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
)

// The names of the controllers, in logs and metrics.
const (
	claimController  = "cosi-v1alpha2-bucket-claim"
	accessController = "cosi-v1alpha2-bucket-access"
)

// Reconciler serves BucketClaims and BucketAccesses.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: what is recorded never comes from a cache, and neither does what a step that cannot be undone
	// depends on.
	Live client.Reader

	// Events records events on claims and accesses.
	Events record.EventRecorder

	// Templates evaluates the fields of provisioners.
	Templates *template.Evaluator

	// Now returns the time of the cluster, which the times in objects are compared with.
	Now func() time.Time

	repeats          observability.Repeats
	claims, accesses bucketapi.Memory
	serves           bool // claims, as they are the first to be registered
}

// Resources are those that the cluster must have before the reconciler is registered.
func (r *Reconciler) Resources() []schema.GroupVersionResource {
	resources := make([]schema.GroupVersionResource, 0, 5)
	for _, plural := range []string{"bucketclaims", "buckets", "bucketaccesses", "bucketclasses", "bucketaccessclasses"} {
		resources = append(resources, cosiv2.GroupVersion.WithResource(plural))
	}
	return resources
}

// Register adds the reconciler and its watches to the manager, which may be running. The definitions of the resources must exist. A call
// after one that failed adds what is missing.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	if !r.serves {
		if err := r.registerClaims(mgr, options); err != nil {
			return fmt.Errorf("registering the controller of BucketClaims: %w", err)
		}
		r.serves = true
	}
	options.RateLimiter = reconcile.Backoff() // a claim and an access may have the same name
	return ctrl.NewControllerManagedBy(mgr).
		Named(accessController).
		For(&cosiv2.BucketAccess{}).
		Watches(&pavv1.PavBucketAccess{}, handler.EnqueueRequestsFromMapFunc(r.records().Access)).
		Watches(&pavv1.PavBucket{}, handler.EnqueueRequestsFromMapFunc(r.accessesOfBucket)).
		Watches(&cosiv2.BucketClaim{}, handler.EnqueueRequestsFromMapFunc(r.accessesOfClaim)).
		Watches(&cosiv2.BucketAccessClass{}, handler.EnqueueRequestsFromMapFunc(r.accessesOfClass)).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.accessesOfProvisioner), builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), accessController, observability.BucketAccess, nil)).
		Complete(runtimereconcile.Func(r.reconcileAccess))
}

func (r *Reconciler) registerClaims(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(claimController).
		For(&cosiv2.BucketClaim{}).
		Watches(&cosiv2.Bucket{}, handler.EnqueueRequestsFromMapFunc(r.claimsOfBucket)).
		Watches(&pavv1.PavBucket{}, handler.EnqueueRequestsFromMapFunc(r.records().Claim)).
		Watches(&pavv1.PavBucketAccess{}, handler.EnqueueRequestsFromMapFunc(r.records().Claims)).
		Watches(&cosiv2.BucketClass{}, handler.EnqueueRequestsFromMapFunc(r.claimsOfClass)).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.claimsOfProvisioner), builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), claimController, observability.Claim, nil)).
		Complete(runtimereconcile.Func(r.reconcileClaim))
}

// claimActs are the methods that take each step of a claim, and accessActs those of an access.
var (
	claimActs = map[rule.Step]func(*Reconciler, context.Context, claimObservation, rule.Decision) error{
		rule.Done:            func(*Reconciler, context.Context, claimObservation, rule.Decision) error { return nil },
		bucketapi.StepRefuse: (*Reconciler).refuseClaim, stepRecord: (*Reconciler).recordClaim, stepRetain: (*Reconciler).retainBucket, stepShow: (*Reconciler).showClaim,
		stepRelease: (*Reconciler).releaseClaim, stepShowFailure: (*Reconciler).showDeletionFailure, stepLetGo: (*Reconciler).letClaimGo, stepDeleteBucket: (*Reconciler).deleteBucket,
	}
	accessActs = map[rule.Step]func(*Reconciler, context.Context, accessObservation, rule.Decision) error{
		rule.Done:            func(*Reconciler, context.Context, accessObservation, rule.Decision) error { return nil },
		bucketapi.StepRefuse: (*Reconciler).refuseAccess, stepRecord: (*Reconciler).recordAccess, stepRotate: (*Reconciler).rotate,
		stepShow: (*Reconciler).showAccess, stepRelease: (*Reconciler).releaseAccess, stepShowFailure: (*Reconciler).showRevocationFailure,
		stepLetGo: (*Reconciler).letAccessGo,
	}
)

// reconcileClaim takes one step for each claim of a name.
func (r *Reconciler) reconcileClaim(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	all, err := r.gatherClaims(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(all) == 0 {
		r.repeats.Forget(kindClaim + " " + request.String())
	}
	var steps bucketapi.Passes
	for _, o := range all {
		d := decideClaim(o)
		steps.Take(ctx, o.uid, d, func() error { return claimActs[d.Step](r, ctx, o, d) })
	}
	return steps.Result()
}

// reconcileAccess is reconcileClaim for accesses.
func (r *Reconciler) reconcileAccess(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	all, err := r.gatherAccesses(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(all) == 0 {
		r.repeats.Forget(kindAccess + " " + request.String())
	}
	var steps bucketapi.Passes
	for _, o := range all {
		d := decideAccess(o)
		steps.Take(ctx, o.uid, d, func() error { return accessActs[d.Step](r, ctx, o, d) })
	}
	return steps.Result()
}
