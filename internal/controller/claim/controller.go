package claim

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// Reconciler turns claims into PavVolumes.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: what is recorded never comes from a cache.
	Live client.Reader

	// Events records events on claims.
	Events record.EventRecorder

	// CrossNamespaceSources says that claims may name sources of other namespaces, where a ReferenceGrant lets them.
	CrossNamespaceSources bool

	// Now returns the time of the cluster, which the times in objects are compared with.
	Now func() time.Time

	controller       controller.Controller
	cache            cache.Cache
	watchesSnapshots atomic.Bool // whether the cache has VolumeSnapshots

	grants        sync.Mutex
	watchesGrants bool

	repeats observability.Repeats
	copies  copies
}

// Register adds the reconciler and its watches to the manager.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	r.cache = mgr.GetCache()
	claims := ctrl.NewControllerManagedBy(mgr).
		Named("claim").
		For(&corev1.PersistentVolumeClaim{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.ofClaim)).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.claimsBy(reconcile.ClaimsByClass))).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.claimsBy(reconcile.ClaimsByProvisioner)), builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		Watches(&pavv1.PavVolume{}, handler.EnqueueRequestsFromMapFunc(claimOf), builder.WithPredicates(createdOrDeleted)).
		Watches(&pavv1.PavBucket{}, handler.EnqueueRequestsFromMapFunc(r.ofBucket)).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "claim", observability.Claim, nil))
	served, err := reconcile.ServesAttributesClasses(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if served {
		claims.Watches(&storagev1.VolumeAttributesClass{}, handler.EnqueueRequestsFromMapFunc(r.claimsBy(reconcile.ClaimsByAttributesClass)))
	}
	r.controller, err = claims.Build(r)
	return err
}

// createdOrDeleted passes the creation and deletion of PavVolumes: other changes do not matter to the claim.
var createdOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

func claimOf(_ context.Context, object client.Object) []ctrl.Request {
	volume, ok := object.(*pavv1.PavVolume)
	if !ok {
		return nil
	}
	ref := volume.Spec.ClaimRef
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}}
}

// claimsBy maps an object to the claims that an index lists under the object's name.
func (r *Reconciler) claimsBy(name string) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		claims := &corev1.PersistentVolumeClaimList{}
		if err := r.Client.List(ctx, claims, client.MatchingFields{name: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot look claims up", "index", name, "key", object.GetName())
			return nil
		}
		requests := make([]ctrl.Request, len(claims.Items))
		for i := range claims.Items {
			requests[i].NamespacedName = client.ObjectKeyFromObject(&claims.Items[i])
		}
		return requests
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := r.Client.Get(ctx, request.NamespacedName, claim); apierrors.IsNotFound(err) {
		r.repeats.Forget(request.String())
		r.copies.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	o, err := r.gather(ctx, claim)
	if err != nil {
		return ctrl.Result{}, err
	}
	return reconcile.Result(r.act(ctx, o, decide(o)))
}

// gather reads from the cache what the decision depends on.
func (r *Reconciler) gather(ctx context.Context, claim *corev1.PersistentVolumeClaim) (snapshot, error) {
	o := snapshot{claim: claim, crossNamespace: r.CrossNamespaceSources}
	var err error
	if o.volume, err = optional(ctx, r.Client, protocol.VolumeName(claim.UID), &pavv1.PavVolume{}); err != nil {
		return o, err
	}
	if o.provisioner, err = optional(ctx, r.Client, protocol.Provisioner(claim), &pavv1.PavProvisioner{}); err != nil {
		return o, err
	}
	if o.class, err = optional(ctx, r.Client, protocol.ClassName(claim), &storagev1.StorageClass{}); err != nil || o.volume != nil || !concerns(o) {
		return o, err
	}
	if o.attributesClass, err = reconcile.AttributesClass(ctx, r.Client, protocol.AttributesClass(claim)); err != nil {
		return o, err
	}
	if o.source, err = r.cachedSource(ctx, claim); err != nil {
		return o, err
	}
	o.bucket, err = r.cachedBucket(ctx, claim)
	return o, err
}

// optional returns the cluster-scoped object of the name, or nil if there is none.
func optional[T client.Object](ctx context.Context, reader client.Reader, name string, object T) (T, error) {
	var none T
	if name == "" {
		return none, nil
	}
	return reconcile.Optional(ctx, reader, types.NamespacedName{Name: name}, object)
}

func (r *Reconciler) act(ctx context.Context, o snapshot, d decision) error {
	switch d.action {
	case ignore:
		return nil
	case leave:
		r.report(o.claim, corev1.EventTypeNormal, protocol.Provisioning, "Assuming an external populator will provision the volume")
		return nil
	case refuse:
		// It is not a failure of PaV, and everything that could change it is watched. It is repeated while the claim
		// exists only because events expire.
		return &reconcile.Later{After: r.report(o.claim, corev1.EventTypeWarning, protocol.ProvisioningFailed, d.message)}
	case create:
		return r.create(ctx, o)
	case copyClaim:
		return r.copyClaim(ctx, o)
	}
	return fmt.Errorf("no such action: %q", d.action)
}

// report records an event on a claim, unless the same event was recorded a short time ago, and returns after what
// time it may be recorded again.
func (r *Reconciler) report(claim *corev1.PersistentVolumeClaim, eventType, reason, message string) time.Duration {
	due, next := r.repeats.Due(client.ObjectKeyFromObject(claim).String(), string(claim.UID)+" "+message, r.Now())
	if due {
		r.Events.Event(claim, eventType, reason, observability.Clip(message, observability.MaxNote))
	}
	return next
}
