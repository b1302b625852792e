package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/ledger"
	"github.com/albertofaria/pav/internal/controller/podrun"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/controller/turn"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Reconciler grants, rotates and revokes accesses.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: for templates, and before steps that cannot be undone.
	Live client.Reader

	// Secrets writes Secrets. It has no cache, and reads only those of pav-credentials.
	Secrets client.Client

	// Runner runs pods. It reads from the API server.
	Runner *workflow.Runner

	// Events records events on those who ask for access, and on PavBucketAccesses.
	Events record.EventRecorder

	// Templates evaluates the fields of provisioners.
	Templates *template.Evaluator

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults

	// Pool says how many pods run at once, together with those of volumes.
	Pool *attempt.Pool

	// Turns says which pod may work on a bucket, together with those of PavBuckets.
	Turns *turn.Turns

	// AdoptOthers adopts the records of the other kind that takes turns.
	AdoptOthers func(context.Context) error

	// Version is the version of the agent, which is written with each status.
	Version string

	// Now returns the time of the cluster, which the times in objects are compared with.
	Now func() time.Time

	// accounts is held while an account that a pod has told is compared with those of others, and recorded.
	accounts sync.Mutex

	requests     workqueue.TypedRateLimitingInterface[ctrl.Request]
	slots        *attempt.Slots
	runs         *podrun.Pods[*pavv1.PavBucketAccess]
	ledger       ledger.Writer[*pavv1.PavBucketAccess]
	expectations reconcile.Expectations
	repeats      observability.Repeats
}

// Wake brings the next pass of an access.
func (r *Reconciler) Wake(name string) { r.requests.Add(named(name)[0]) }

// prepare takes part in the slots. It must be called before the manager starts.
func (r *Reconciler) prepare() {
	r.slots = r.Pool.Of(kind, r.Wake)
	r.ledger = ledger.Writer[*pavv1.PavBucketAccess]{Client: r.Client, Expectations: &r.expectations, Version: r.Version, Now: r.Now}
	r.runs = &podrun.Pods[*pavv1.PavBucketAccess]{
		Client: r.Client, Live: r.Live, Runner: r.Runner, Slots: r.slots, Now: r.Now, Index: reconcile.PodsByAccess,
		Empty: func() *pavv1.PavBucketAccess { return &pavv1.PavBucketAccess{} }, Owner: owner, Purpose: purpose, Patch: r.patch,
		Unsettled: isStray, Lost: r.lost,
	}
}

// Register adds the reconciler and its watches to the manager.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	r.prepare()
	captureQueue := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		r.requests = q // before the first pass, and so before the first slot
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("bucket-access").
		For(&pavv1.PavBucketAccess{}).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.ofProvisioner), builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		Watches(&pavv1.PavBucket{}, handler.EnqueueRequestsFromMapFunc(r.ofBucket)).
		Watches(&pavv1.PavStage{}, handler.EnqueueRequestsFromMapFunc(ofStage)).
		Watches(&pavv1.PavVolume{}, handler.EnqueueRequestsFromMapFunc(ofPavVolume), builder.WithPredicates(onAccountShown)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ofPod)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(reconcile.OfNode(r.Client, ofPod, noRequests)), builder.WithPredicates(reconcile.OnNodeGone)).
		WatchesRawSource(captureQueue).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "bucket-access", observability.Access, nil)).
		Complete(r)
}

func named(name string) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// ofProvisioner maps a PavProvisioner to the accesses that may wait for it.
func (r *Reconciler) ofProvisioner(ctx context.Context, object client.Object) []ctrl.Request {
	return r.in(ctx, reconcile.AccessesByProvisioner, object.GetName())
}

// ofBucket maps a PavBucket to the accesses that may wait for it.
func (r *Reconciler) ofBucket(ctx context.Context, object client.Object) []ctrl.Request {
	return r.in(ctx, reconcile.AccessesByBucket, object.GetName())
}

// in returns requests for the accesses that an index has of a value.
func (r *Reconciler) in(ctx context.Context, index, value string) []ctrl.Request {
	records := &pavv1.PavBucketAccessList{}
	if err := r.Client.List(ctx, records, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look accesses up", "index", index, "value", value)
		return nil
	}
	var requests []ctrl.Request
	for i := range records.Items {
		requests = append(requests, named(records.Items[i].Name)...)
	}
	return requests
}

func ofPod(_ context.Context, object client.Object) []ctrl.Request {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == kind {
		return named(owner.Name)
	}
	return nil
}

// noRequests is for objects that concern no access.
func noRequests(context.Context, client.Object) []ctrl.Request { return nil }

// acts are the methods that take each step.
var acts = map[rule.Step]func(*Reconciler, context.Context, observation, rule.Decision) error{
	rule.Wait: (*Reconciler).wait, rule.RunPod: (*Reconciler).runPod, rule.StopPod: (*Reconciler).stopPod,
	stepRecordPod: (*Reconciler).recordPod, stepDropPod: (*Reconciler).dropPod,
	stepRecordLateMessage: (*Reconciler).recordLateMessage, stepRecordFailure: (*Reconciler).recordFailure,
	stepGrant: (*Reconciler).grant, stepMarkDelivering: (*Reconciler).markDelivering, stepDeliver: (*Reconciler).deliver,
	stepDeleteKey: (*Reconciler).deleteKey, stepRelease: (*Reconciler).release, stepRevoke: (*Reconciler).revoke,
	stepRecordRevoked: (*Reconciler).recordRevoked, stepSettle: (*Reconciler).settle, stepLetGo: (*Reconciler).letGo,
	stepRenewStage: (*Reconciler).renewStage, stepForget: (*Reconciler).forget,
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	for _, adopt := range []func(context.Context) error{r.Adopt, r.AdoptOthers} {
		if err := adopt(ctx); err != nil {
			return reconcile.Result(err)
		}
	}
	found := &pavv1.PavBucketAccess{}
	if err := r.Client.Get(ctx, request.NamespacedName, found); apierrors.IsNotFound(err) {
		return reconcile.Result(r.absent(ctx, request.Name))
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if r.expectations.IsOld(found.Name, found.ResourceVersion) {
		return reconcile.Result(reconcile.ErrStale)
	}
	o, err := r.gather(ctx, found)
	if err != nil {
		return reconcile.Result(err)
	}
	r.sync(o)
	if err := r.runs.Sweep(ctx, found, o.Found); err != nil {
		return reconcile.Result(err)
	}
	d := decide(o)
	ctrl.LoggerFrom(ctx).V(2).Info("decided", observability.Step, d.Step, observability.Rule, d.Rule)
	if d.Step != rule.RunPod && d.Step != stepRecordLateMessage && o.progress() == attempt.Intended {
		r.slots.Release(found.Name) // it waits for something else than a slot
		if !o.runsUnrecorded() {
			r.Turns.Leave(turnOf(found.Name))
		}
	}
	if d.Step == rule.Done {
		return ctrl.Result{RequeueAfter: d.After}, nil
	}
	if begins(d.Step) && !o.retry.IsZero() {
		r.repeats.Forget(found.Name) // a requested attempt is reported even if it fails as before
	}
	if err := acts[d.Step](r, ctx, o, d); err != nil {
		return reconcile.Result(err)
	}
	return ctrl.Result{RequeueAfter: d.After}, nil
}

// sync brings slot and turn into line with the state of the recorded pod. The turn lasts until the outcome of the pod is recorded: from
// then on, others know of the account. A pod that is not recorded works on the buckets as well.
func (r *Reconciler) sync(o observation) {
	r.slots.Sync(owner(o.record), o.attempt())
	switch progress := o.progress(); {
	case o.runsUnrecorded():
		r.Turns.Restore(turnOf(o.record.Name), keys(o.buckets))
	case progress == attempt.Intended:
	case progress == attempt.None || o.at(pavv1.AccessDelivering):
		r.Turns.Leave(turnOf(o.record.Name))
	default:
		r.Turns.Restore(turnOf(o.record.Name), keys(o.buckets))
	}
}

// Adopt gives slots and turns, once, to the records whose pods an earlier agent has started. No pod of either kind is created before.
func (r *Reconciler) Adopt(ctx context.Context) error {
	return r.runs.Adopt(func() ([]*pavv1.PavBucketAccess, error) { return r.adopted(ctx) })
}

// adopted returns all records. Those whose pods an earlier agent has started, or may have created, get their turns.
func (r *Reconciler) adopted(ctx context.Context) ([]*pavv1.PavBucketAccess, error) {
	records := &pavv1.PavBucketAccessList{}
	if err := r.Client.List(ctx, records); err != nil {
		return nil, fmt.Errorf("looking up PavBucketAccesses: %w", err)
	}
	cached := map[types.UID]bool{}
	for i := range records.Items {
		cached[records.Items[i].UID] = true
	}
	if err := reconcile.CheckComplete(ctx, r.Live, kind, cached); err != nil {
		return nil, err
	}
	all := make([]*pavv1.PavBucketAccess, len(records.Items))
	for i := range records.Items {
		a := &records.Items[i]
		all[i] = a
		if a.Status.Pod == nil || a.Status.Step == pavv1.AccessDelivering {
			continue
		}
		if has, err := r.runs.MayHavePod(ctx, a); err != nil || !has {
			if err != nil {
				return nil, err
			}
			continue
		}
		buckets, err := bucketsOf(ctx, r.Client, a)
		if err != nil {
			return nil, err
		}
		r.Turns.Restore(turnOf(a.Name), keys(buckets))
	}
	return all, nil
}

// absent clears up after a record that does not exist any more.
func (r *Reconciler) absent(ctx context.Context, name string) error {
	r.Turns.Leave(turnOf(name))
	r.expectations.Forget(name)
	r.repeats.Forget(name)
	return r.runs.Forget(ctx, name)
}
