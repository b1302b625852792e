package obc

import (
	"context"
	"errors"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
)

// Reconciler serves ObjectBucketClaims.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: what is recorded never comes from a cache, and neither does what a step that cannot be undone
	// depends on.
	Live client.Reader

	// Direct writes ConfigMaps, and reads none.
	Direct client.Client

	// Events records events on claims.
	Events record.EventRecorder

	// Templates evaluates the fields of provisioners.
	Templates *template.Evaluator

	// Now returns the time of the cluster, which the times in objects are compared with.
	Now func() time.Time

	repeats  observability.Repeats
	memories memories
}

// The indexes of ObjectBucketClaims.
const (
	// claimsByClass finds claims by their StorageClass.
	claimsByClass = "objectbucketclaim.class"

	// claimsByObjectBucket finds claims by the bucket of the name of their ObjectBucket.
	claimsByObjectBucket = "objectbucketclaim.objectbucket"
)

// Resources are those that the cluster must have before the reconciler is registered.
func (r *Reconciler) Resources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		objectbucketv1.GroupVersion.WithResource("objectbucketclaims"), objectbucketv1.GroupVersion.WithResource("objectbuckets"),
	}
}

// Index adds the indexes of ObjectBucketClaims to the cache.
func (r *Reconciler) Index(ctx context.Context, indexer client.FieldIndexer) error {
	for name, extract := range map[string]func(*objectbucketv1.ObjectBucketClaim) string{
		claimsByClass: func(c *objectbucketv1.ObjectBucketClaim) string { return c.Spec.StorageClassName },
		claimsByObjectBucket: func(c *objectbucketv1.ObjectBucketClaim) string {
			return reconcile.Bucket(objectbucketv1.BucketOf(c.Namespace, c.Name))
		},
	} {
		if err := indexer.IndexField(ctx, &objectbucketv1.ObjectBucketClaim{}, name, func(object client.Object) []string {
			if claim, ok := object.(*objectbucketv1.ObjectBucketClaim); ok {
				return []string{extract(claim)}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("adding index %s: %w", name, err)
		}
	}
	return nil
}

// Register adds the reconciler and its watches to the manager, which may be running. The definitions of the resources must exist.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("object-bucket-claim").
		For(&objectbucketv1.ObjectBucketClaim{}).
		Watches(&objectbucketv1.ObjectBucket{}, handler.EnqueueRequestsFromMapFunc(r.ofObjectBucket)).
		Watches(&pavv1.PavBucket{}, handler.EnqueueRequestsFromMapFunc(ofBucket)).
		Watches(&pavv1.PavBucketAccess{}, handler.EnqueueRequestsFromMapFunc(ofAccess)).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.ofClass)).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.ofProvisioner), builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "object-bucket-claim", observability.Claim, nil)).
		Complete(r)
}

func named(namespace, name string) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// ofObjectBucket maps an ObjectBucket to the claim that PaV wrote it for, and to those that would have one of its name.
func (r *Reconciler) ofObjectBucket(ctx context.Context, object client.Object) []ctrl.Request {
	requests := r.claimsBy(ctx, claimsByObjectBucket, reconcile.Bucket(object.GetName()), func(c *objectbucketv1.ObjectBucketClaim) bool {
		return objectbucketv1.BucketOf(c.Namespace, c.Name) == object.GetName()
	})
	if b, ok := object.(*objectbucketv1.ObjectBucket); ok && b.Labels[pavv1.ProvisionerLabel] != "" && b.Spec.ClaimRef != nil {
		requests = append(requests, named(b.Spec.ClaimRef.Namespace, b.Spec.ClaimRef.Name)...)
	}
	return requests
}

func ofBucket(_ context.Context, object client.Object) []ctrl.Request {
	if b, ok := object.(*pavv1.PavBucket); ok && b.Spec.API == pavv1.BucketAPIClaim {
		return named(b.Spec.ClaimRef.Namespace, b.Spec.ClaimRef.Name)
	}
	return nil
}

func ofAccess(_ context.Context, object client.Object) []ctrl.Request {
	if a, ok := object.(*pavv1.PavBucketAccess); ok && a.Spec.API == pavv1.BucketAPIClaim {
		return named(a.Spec.Requester.Namespace, a.Spec.Requester.Name)
	}
	return nil
}

// ofClass maps a StorageClass to its claims that may wait for it.
func (r *Reconciler) ofClass(ctx context.Context, object client.Object) []ctrl.Request {
	return r.claimsBy(ctx, claimsByClass, object.GetName(), waits)
}

// ofProvisioner maps a PavProvisioner to the claims that may wait for it.
func (r *Reconciler) ofProvisioner(ctx context.Context, object client.Object) []ctrl.Request {
	classes := &storagev1.StorageClassList{}
	if err := r.Client.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look StorageClasses up")
		return nil
	}
	var requests []ctrl.Request
	for i := range classes.Items {
		if class := &classes.Items[i]; class.Provisioner == object.GetName() {
			requests = append(requests, r.ofClass(ctx, class)...)
		}
	}
	return requests
}

// waits reports whether a claim may wait for something.
func waits(c *objectbucketv1.ObjectBucketClaim) bool {
	return c.Status.Phase != objectbucketv1.ClaimBound || c.DeletionTimestamp != nil
}

// claimsBy returns requests for the claims that an index lists, and that are wanted.
func (r *Reconciler) claimsBy(ctx context.Context, index, key string, wanted func(*objectbucketv1.ObjectBucketClaim) bool) []ctrl.Request {
	claims := &objectbucketv1.ObjectBucketClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look ObjectBucketClaims up", "index", index, "key", key)
		return nil
	}
	var requests []ctrl.Request
	for i := range claims.Items {
		if c := &claims.Items[i]; wanted(c) {
			requests = append(requests, named(c.Namespace, c.Name)...)
		}
	}
	return requests
}

// acts are the methods that take each step.
var acts = map[rule.Step]func(*Reconciler, context.Context, observation, rule.Decision) error{
	rule.Done:  func(*Reconciler, context.Context, observation, rule.Decision) error { return nil },
	stepRefuse: (*Reconciler).refuse, stepRecord: (*Reconciler).record, stepHold: (*Reconciler).holdAgain, stepUpdate: (*Reconciler).update, stepRotate: (*Reconciler).rotate,
	stepMarkPending: (*Reconciler).markPending, stepBind: (*Reconciler).bind,
	stepReleaseAccess: (*Reconciler).releaseAccess, stepReleaseBucket: (*Reconciler).releaseBucket,
	stepDeleteObjectBucket: (*Reconciler).deleteObjectBucket, stepReleaseClaim: (*Reconciler).releaseClaim,
}

// Reconcile implements reconcile.Reconciler. It takes one step for each claim of a name: what former claims have left must not wait for the
// present one, nor the other way round.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	all, err := r.gather(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(all) == 0 {
		r.repeats.Forget(request.String())
	}
	var next ctrl.Result
	var failures []error
	for _, o := range all {
		d := decide(o)
		ctrl.LoggerFrom(ctx).V(2).Info("decided", "uid", o.uid, observability.Step, d.Step, observability.Rule, d.Rule)
		result, err := reconcile.Result(acts[d.Step](r, ctx, o, d))
		failures = append(failures, err)
		for _, after := range []time.Duration{result.RequeueAfter, d.After} {
			if after > 0 && (next.RequeueAfter == 0 || after < next.RequeueAfter) {
				next.RequeueAfter = after
			}
		}
	}
	if err := errors.Join(failures...); err != nil {
		return ctrl.Result{}, err
	}
	return next, nil
}
