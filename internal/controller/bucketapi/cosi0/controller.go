package cosi0

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
)

// controllerName is the name of the controller, in logs and metrics.
const controllerName = "cosi-proposal-bucket"

// Reconciler serves Buckets.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: what is recorded never comes from a cache, and neither does what a step that cannot be undone
	// depends on.
	Live client.Reader

	// Events records events on Buckets.
	Events record.EventRecorder

	// Templates evaluates the fields of provisioners.
	Templates *template.Evaluator

	// Now returns the time of the cluster, which the times in objects are compared with.
	Now func() time.Time

	repeats observability.Repeats
	memory  bucketapi.Memory
}

// The indexes of the kinds of the proposal.
const (
	// bucketsByClass finds Buckets by their BucketClass.
	bucketsByClass = "proposedbucket.class"

	// bucketsByContent finds Buckets by the hash of the name that their BucketContent has, or would have.
	bucketsByContent = "proposedbucket.content"

	// contentsByBucket finds BucketContents by the key of the Bucket that they name.
	contentsByBucket = "bucketcontent.bucket"
)

// Resources are those that the cluster must have before the reconciler is registered.
func (r *Reconciler) Resources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		cosiv0.GroupVersion.WithResource("buckets"), cosiv0.GroupVersion.WithResource("bucketcontents"), cosiv0.GroupVersion.WithResource("bucketclasses"),
	}
}

// Index adds the indexes of the kinds of the proposal to the cache.
func (r *Reconciler) Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		name    string
		object  client.Object
		extract client.IndexerFunc
	}{
		{bucketsByClass, &cosiv0.Bucket{}, bucketapi.IndexedBy(func(b *cosiv0.Bucket) string { return b.Spec.BucketClassName })},
		{bucketsByContent, &cosiv0.Bucket{}, bucketapi.IndexedBy(func(b *cosiv0.Bucket) string { return reconcile.Bucket(contentFor(b)) })},
		{contentsByBucket, &cosiv0.BucketContent{}, bucketapi.IndexedBy(keyOfBucket)},
	} {
		if err := indexer.IndexField(ctx, index.object, index.name, index.extract); err != nil {
			return fmt.Errorf("adding index %s: %w", index.name, err)
		}
	}
	return nil
}

// contentFor returns the name of the BucketContent that a Bucket without records would have.
func contentFor(b *cosiv0.Bucket) string { return cosiv0.ContentOf(b.Spec.BucketClassName, b.UID) }

// keyOfBucket returns the key of the Bucket that a BucketContent names; "" for none.
func keyOfBucket(content *cosiv0.BucketContent) string {
	ref := content.Spec.BucketRef
	if ref == nil {
		return ""
	}
	return bucketapi.KeyOfClaim(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
}

// Register adds the reconciler and its watches to the manager, which may be running. The definitions of the resources must exist.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	records := bucketapi.Records{Client: r.Client, API: pavv1.BucketAPICOSI0}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&cosiv0.Bucket{}).
		Watches(&cosiv0.BucketContent{}, handler.EnqueueRequestsFromMapFunc(r.ofContent)).
		Watches(&pavv1.PavBucket{}, handler.EnqueueRequestsFromMapFunc(records.Claim)).
		Watches(&pavv1.PavBucketAccess{}, handler.EnqueueRequestsFromMapFunc(records.Access)).
		Watches(&cosiv0.BucketClass{}, handler.EnqueueRequestsFromMapFunc(r.ofClass)).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.ofProvisioner), builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), controllerName, observability.Claim, nil)).
		Complete(r)
}

// ofContent maps a BucketContent to the Bucket that it names, and to the one that would have one of its name.
func (r *Reconciler) ofContent(ctx context.Context, object client.Object) []ctrl.Request {
	requests := r.bucketsBy(ctx, bucketsByContent, reconcile.Bucket(object.GetName()), func(b *cosiv0.Bucket) bool { return contentFor(b) == object.GetName() })
	if content, ok := object.(*cosiv0.BucketContent); ok && content.Spec.BucketRef != nil {
		requests = append(requests, bucketapi.Requests(content.Spec.BucketRef.Namespace, content.Spec.BucketRef.Name)...)
	}
	return requests
}

// ofClass maps a BucketClass to its Buckets that may wait for it.
func (r *Reconciler) ofClass(ctx context.Context, object client.Object) []ctrl.Request {
	return r.bucketsBy(ctx, bucketsByClass, object.GetName(), func(b *cosiv0.Bucket) bool {
		return b.Status.Phase != cosiv0.BucketBound || b.DeletionTimestamp != nil
	})
}

// bucketsBy returns requests for the Buckets that an index lists, and that are wanted.
func (r *Reconciler) bucketsBy(ctx context.Context, index, key string, wanted func(*cosiv0.Bucket) bool) []ctrl.Request {
	buckets := &cosiv0.BucketList{}
	if err := r.Client.List(ctx, buckets, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look Buckets up", "index", index, "key", key)
		return nil
	}
	var requests []ctrl.Request
	for i := range buckets.Items {
		if b := &buckets.Items[i]; wanted(b) {
			requests = append(requests, bucketapi.Requests(b.Namespace, b.Name)...)
		}
	}
	return requests
}

// ofProvisioner maps a PavProvisioner to the Buckets that may wait for it.
func (r *Reconciler) ofProvisioner(ctx context.Context, object client.Object) []ctrl.Request {
	classes := &cosiv0.BucketClassList{}
	if err := r.Client.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look BucketClasses up")
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

// acts are the methods that take each step.
var acts = map[rule.Step]func(*Reconciler, context.Context, observation, rule.Decision) error{
	rule.Done:            func(*Reconciler, context.Context, observation, rule.Decision) error { return nil },
	bucketapi.StepRefuse: (*Reconciler).refuse, stepRecord: (*Reconciler).record, stepHold: (*Reconciler).holdAgain, stepRotate: (*Reconciler).rotate, stepMarkPending: (*Reconciler).markPending,
	stepShow: (*Reconciler).show, stepReleaseAccess: (*Reconciler).releaseAccess, stepReleaseBucket: (*Reconciler).releaseBucket,
	stepDeleteContent: (*Reconciler).deleteContent, stepLetGo: (*Reconciler).letGo,
}

// Reconcile implements reconcile.Reconciler. It takes one step for each Bucket of a name.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	all, err := r.gather(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(all) == 0 {
		r.repeats.Forget(request.String())
	}
	var steps bucketapi.Passes
	for _, o := range all {
		d := decide(o)
		steps.Take(ctx, o.uid, d, func() error { return acts[d.Step](r, ctx, o, d) })
	}
	return steps.Result()
}
