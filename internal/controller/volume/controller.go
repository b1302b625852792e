package volume

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	kubesource "sigs.k8s.io/controller-runtime/pkg/source"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/observability/metrics"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Reconciler provisions, reclaims and deletes volumes.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: for templates, and before steps that cannot be undone.
	Live client.Reader

	// Runner runs pods. It reads from the API server.
	Runner *workflow.Runner

	// Events records events on claims, PersistentVolumes and PavVolumes.
	Events record.EventRecorder

	// Templates evaluates the fields of provisioners.
	Templates *template.Evaluator

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults

	// Version is the version of the agent, which is written with each status.
	Version string

	// Pool has the slots of pods.
	Pool *attempt.Pool

	// Metrics counts the outcomes of pods; nil disables these metrics.
	Metrics *metrics.Workflows

	// Now returns the time of the cluster, which the times in objects are compared with.
	Now func() time.Time

	slots        *attempt.Slots
	handles      reconcile.Reservations
	holders      *reconcile.LiveReads
	finders      finders
	expectations reconcile.Expectations
	repeats      observability.Repeats
	left         observability.Repeats // of events about storage that may be left, apart from all others
	orphans      observability.Repeats // of events about PersistentVolumes without PavVolumes, by UID
	// rejections delays the next write of a PersistentVolume, or of a claim's status, that the API server rejected.
	rejections workqueue.TypedRateLimiter[string]

	// dropsSizes says that the API server has dropped what was written of an expansion to a claim's status: Kubernetes has
	// these fields by default since 1.32.
	dropsSizes atomic.Bool

	// dropsAttributes says that the API server has dropped what was written of attributes: Kubernetes has these fields by default
	// since 1.34.
	dropsAttributes atomic.Bool

	mu      sync.Mutex
	adopted bool // whether the queue has the pods of earlier agents
}

// Register adds the reconciler and its watches to the manager.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	r.rejections = workqueue.NewTypedItemExponentialFailureRateLimiter[string](workflow.FirstRetryDelay, workflow.LongestRetryDelay)
	r.holders = &reconcile.LiveReads{Reader: r.Live}
	var requests workqueue.TypedRateLimitingInterface[ctrl.Request]
	r.slots = r.Pool.Of("volume", func(volume string) { requests.Add(named(volume)[0]) })
	captureQueue := kubesource.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		requests = q // before the first pass, and so before the first slot
		return nil
	})
	volumes := ctrl.NewControllerManagedBy(mgr).
		Named("volume").
		For(&pavv1.PavVolume{}, builder.WithPredicates(moreThanConditions)).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(reconcile.Each(ofPersistentVolume, r.concerned, r.fromSource))).
		Watches(&pavv1.PavVolume{}, handler.EnqueueRequestsFromMapFunc(r.concerned), builder.WithPredicates(storageChanges)).
		Watches(&pavv1.PavStage{}, handler.EnqueueRequestsFromMapFunc(reconcile.Each(ofStage, r.concerned, r.fromSource))).
		Watches(&pavv1.PavVolume{}, handler.EnqueueRequestsFromMapFunc(r.finders.ofFinder), builder.WithPredicates(tells)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(reconcile.OfNode(r.Client, ofPod, r.fromSource)), builder.WithPredicates(reconcile.OnNodeGone)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(ofClaim)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ofPod)).
		Watches(&pavv1.PavSnapshot{}, handler.EnqueueRequestsFromMapFunc(ofSnapshot), builder.WithPredicates(gone)).
		Watches(&pavv1.PavSnapshot{}, handler.EnqueueRequestsFromMapFunc(r.fromSource), builder.WithPredicates(sourceChanges)).
		Watches(&pavv1.PavSnapshot{}, formerReaders).
		Watches(&pavv1.PavVolume{}, formerReaders).
		Watches(&pavv1.PavVolume{}, handler.EnqueueRequestsFromMapFunc(r.fromSource), builder.WithPredicates(sourceChanges)).
		Watches(&pavv1.PavVolume{}, handler.EnqueueRequestsFromMapFunc(r.sourceOf), builder.WithPredicates(phaseChanges)).
		Watches(&pavv1.PavBucket{}, handler.EnqueueRequestsFromMapFunc(r.ofBucketRecord)).
		Watches(&pavv1.PavBucketAccess{}, handler.EnqueueRequestsFromMapFunc(ofBucketAccess)).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.unsettled), builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(r.unsettled)).
		Watches(&storagev1.CSINode{}, handler.EnqueueRequestsFromMapFunc(r.ofNewDrivers)).
		WatchesRawSource(captureQueue).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "volume", observability.Volume, r.keys))
	served, err := reconcile.ServesAttributesClasses(mgr.GetRESTMapper())
	if err != nil {
		return err
	}
	if served {
		volumes.Watches(&storagev1.VolumeAttributesClass{}, handler.EnqueueRequestsFromMapFunc(r.ofAttributesClass))
	}
	return volumes.Complete(r)
}

// keys returns the log keys of a volume, besides its name.
func (r *Reconciler) keys(name types.NamespacedName) []any {
	volume := &pavv1.PavVolume{}
	if err := r.Client.Get(context.Background(), name, volume); err != nil { //nolint:forbidigo // it reads the cache
		return nil
	}
	return []any{observability.Claim, claimKey(volume).String(), observability.Provisioner, volume.Spec.Provisioner}
}

// moreThanConditions passes all updates except those of conditions: a report of the reconciler itself needs no pass.
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

func named(name string) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// storageChanges passes updates that may free storage, or take it.
var storageChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*pavv1.PavVolume)
	after, also := e.ObjectNew.(*pavv1.PavVolume)
	return !ok || !also || before.Status.Phase != after.Status.Phase || !slices.Equal(reconcile.StoragesOf(before), reconcile.StoragesOf(after))
}}

func ofPod(_ context.Context, object client.Object) []ctrl.Request {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "PavVolume" {
		return named(owner.Name)
	}
	return nil
}

// gone passes the ends of objects.
var gone = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

func ofSnapshot(_ context.Context, object client.Object) []ctrl.Request {
	snapshot, ok := object.(*pavv1.PavSnapshot)
	if !ok || snapshot.Spec.VolumeName == "" {
		return nil
	}
	return named(snapshot.Spec.VolumeName)
}

// ofPersistentVolume maps a PersistentVolume to the volume of the same name.
func ofPersistentVolume(_ context.Context, object client.Object) []ctrl.Request {
	return named(object.GetName())
}

func ofStage(_ context.Context, object client.Object) []ctrl.Request {
	stage, ok := object.(*pavv1.PavStage)
	if !ok {
		return nil
	}
	return named(stage.Spec.VolumeName)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if err := r.adoptAll(ctx); err != nil {
		return ctrl.Result{}, err
	}
	volume := &pavv1.PavVolume{}
	if err := r.Client.Get(ctx, request.NamespacedName, volume); apierrors.IsNotFound(err) {
		return reconcile.Result(r.gone(ctx, request.Name))
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if r.expectations.IsOld(volume.Name, volume.ResourceVersion) {
		return reconcile.Result(reconcile.ErrStale)
	}
	if plan := volume.Status.Plan; volume.Status.Handle != "" || plan != nil && plan.Handle != "" {
		r.handles.Release(request.Name) // the index has the handle now
	}
	o, err := r.gather(ctx, volume)
	if err != nil {
		return reconcile.Result(err)
	}
	r.slots.Sync(owner(o.volume), o.slot())
	if err := r.sweep(ctx, o); err != nil {
		return reconcile.Result(err)
	}
	d := decide(o)
	ctrl.LoggerFrom(ctx).V(2).Info("decided", observability.Step, d.Step, observability.Rule, d.Rule)
	if !keepsTurn(d.Step) && o.progress() == attempt.Intended {
		r.slots.Release(volume.Name) // it waits for something else than a slot
	}
	if err := r.take(ctx, o, d); err != nil {
		return reconcile.Result(err)
	}
	return ctrl.Result{RequeueAfter: d.After}, nil
}

// take takes the step of a decision.
func (r *Reconciler) take(ctx context.Context, o observation, d decision) error {
	if needsWhole(d.Step) {
		whole, err := r.whole(ctx, o.volume)
		if err != nil {
			return err
		}
		o.volume = whole
	}
	if begins(d.Step) && !o.retry.IsZero() {
		r.repeats.Forget(o.volume.Name) // a requested attempt is reported even if it fails as before
	}
	return r.act(ctx, o, d)
}

// gone clears up after a PavVolume that does not exist any more.
func (r *Reconciler) gone(ctx context.Context, volume string) error {
	r.handles.Release(volume)
	r.finders.forget(volume)
	r.slots.Release(volume)
	r.expectations.Forget(volume)
	r.repeats.Forget(volume)
	r.left.Forget(volume)
	r.rejections.Forget(volume)
	pods, err := r.podsOf(ctx, volume)
	if err != nil {
		return err
	}
	if err := attempt.ReleaseOrphans(ctx, r.Live, r.Runner, &pavv1.PavVolume{}, volume, pods); err != nil {
		return err
	}
	if len(pods) == 0 { // nothing of another record changes or reads the volume; the end of a pod brings the next pass
		if err := r.settleStatic(ctx, volume); err != nil {
			return err
		}
	}
	if err := r.settleBucket(ctx, volume); err != nil {
		return err
	}
	return r.settleOrphan(ctx, volume)
}

// acts are the methods that take each step.
var acts = map[step]func(*Reconciler, context.Context, observation, decision) error{
	stepWait:              (*Reconciler).wait,
	stepAlign:             (*Reconciler).align,
	stepBegin:             (*Reconciler).begin,
	stepCreate:            (*Reconciler).create,
	stepRefuse:            (*Reconciler).refuseBegin,
	stepRunPod:            (*Reconciler).runPod,
	stepRecordPod:         (*Reconciler).recordPod,
	stepStopPod:           (*Reconciler).stopPod,
	stepDropPod:           (*Reconciler).dropPod,
	stepSyncSource:        (*Reconciler).syncSource,
	stepGiveUpSync:        (*Reconciler).giveUpSync,
	stepLeaveSource:       (*Reconciler).leaveSource,
	stepRecordCreated:     (*Reconciler).recordCreated,
	stepEndCreation:       (*Reconciler).endCreation,
	stepStopCreation:      (*Reconciler).stopCreation,
	stepRecordFailure:     (*Reconciler).recordFailure,
	stepRecordLateMessage: (*Reconciler).recordLateMessage,
	stepRevert:            (*Reconciler).revert,
	stepReverted:          (*Reconciler).markReverted,

	stepRecordConflict: (*Reconciler).recordConflict,
	stepAbandon:        (*Reconciler).abandon,

	stepReturnNode: (*Reconciler).returnNode,
	stepWritePV:    (*Reconciler).writePV,
	stepMarkReady:  (*Reconciler).markReady,

	stepExpand:          (*Reconciler).expand,
	stepHold:            (*Reconciler).hold,
	stepModify:          (*Reconciler).modify,
	stepEndModification: endChange(pavv1.WorkflowModification),
	stepRecordChanged:   (*Reconciler).recordChanged,
	stepEndExpansion:    endChange(pavv1.WorkflowExpansion),
	stepUpdatePV:        (*Reconciler).updatePV,
	stepShowClaim:       (*Reconciler).showClaim,

	stepMarkDeleting: (*Reconciler).markDeleting,
	stepDelete:       (*Reconciler).delete,
	stepMarkDeleted:  (*Reconciler).markDeleted,
	stepDeletePV:     (*Reconciler).deletePV,
	stepRetain:       (*Reconciler).retain,
	stepRelease:      (*Reconciler).release,
	stepDropReaders:  (*Reconciler).dropReaders,
	stepForget:       (*Reconciler).forget,

	stepRecordBucket:  (*Reconciler).recordBucket,
	stepRecordAccess:  (*Reconciler).recordAccess,
	stepRecordGranted: (*Reconciler).recordGranted,
	stepShowBucket:    (*Reconciler).recordBucketShown,
	stepHideBucket:    (*Reconciler).recordBucketHidden,
	stepReleaseAccess: (*Reconciler).releaseAccess,
	stepReleaseBucket: (*Reconciler).releaseBucket,

	stepRecordStatic: (*Reconciler).recordStatic,
	stepDropRecord:   (*Reconciler).dropRecord,
}

// act takes a step.
func (r *Reconciler) act(ctx context.Context, o observation, d decision) error {
	if d.Step == stepDone {
		return nil
	}
	act, ok := acts[d.Step]
	if !ok {
		return fmt.Errorf("no such step: %q", d.Step)
	}
	return act(r, ctx, o, d)
}
