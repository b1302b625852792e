package snapshot

import (
	"context"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/ledger"
	"github.com/albertofaria/pav/internal/controller/podrun"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/observability/metrics"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Reconciler creates and deletes snapshots.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client

	// Live reads from the API server: for templates, and before steps that cannot be undone.
	Live client.Reader

	// Runner runs pods. It reads from the API server.
	Runner *workflow.Runner

	// Events records events on VolumeSnapshots, VolumeSnapshotContents and PavSnapshots.
	Events record.EventRecorder

	// Templates evaluates the fields of provisioners.
	Templates *template.Evaluator

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults

	// Pool says how many pods run at once, together with those of volumes.
	Pool *attempt.Pool

	// Version is the version of the agent, which is written with each status.
	Version string

	// Metrics counts the outcomes of pods; nil disables these metrics.
	Metrics *metrics.Workflows

	// Now returns the time of the cluster, which the times in objects are compared with.
	Now func() time.Time

	requests     workqueue.TypedRateLimitingInterface[ctrl.Request]
	slots        *attempt.Slots
	runs         *podrun.Pods[*pavv1.PavSnapshot]
	ledger       ledger.Writer[*pavv1.PavSnapshot]
	expectations reconcile.Expectations // of PavSnapshots
	contents     reconcile.Expectations // of VolumeSnapshotContents
	repeats      observability.Repeats
	left         observability.Repeats // of events about snapshots that may be left, apart from all others
	handles      reconcile.Reservations
	asking       chan struct{} // is full while the API server is asked who has a snapshot
}

// prepare takes part in the slots. It must be called before the manager starts.
func (r *Reconciler) prepare() {
	r.slots = r.Pool.Of(kind, func(name string) { r.requests.Add(named(name)[0]) })
	r.asking = make(chan struct{}, 1)
	r.ledger = ledger.Writer[*pavv1.PavSnapshot]{Client: r.Client, Expectations: &r.expectations, Version: r.Version, Now: r.Now}
	r.runs = &podrun.Pods[*pavv1.PavSnapshot]{
		Client: r.Client, Live: r.Live, Runner: r.Runner, Slots: r.slots, Now: r.Now, Index: reconcile.PodsBySnapshot,
		Empty: func() *pavv1.PavSnapshot { return &pavv1.PavSnapshot{} }, Owner: owner, Purpose: purpose, Patch: r.patchRecorded,
	}
}

// Register adds the reconciler and its watches to the manager, which may be running. The definitions of snapshots must exist.
func (r *Reconciler) Register(mgr ctrl.Manager, options controller.Options) error {
	captureQueue := source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		r.requests = q // before the first pass, and so before the first slot
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("snapshot").
		For(&pavv1.PavSnapshot{}, builder.WithPredicates(moreThanConditions)).
		Watches(&snapshotv1.VolumeSnapshotContent{}, handler.EnqueueRequestsFromMapFunc(reconcile.Each(ofContent, r.concerned))).
		Watches(&snapshotv1.VolumeSnapshot{}, handler.EnqueueRequestsFromMapFunc(r.ofSnapshot), builder.WithPredicates(ends)).
		Watches(&snapshotv1.VolumeSnapshotClass{}, handler.EnqueueRequestsFromMapFunc(r.contentsBy(contentsByClass))).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.contentsBy(contentsByDriver)), builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		Watches(&pavv1.PavProvisioner{}, handler.EnqueueRequestsFromMapFunc(r.unsettled), builder.WithPredicates(reconcile.IgnoreCountUpdates)).
		Watches(&pavv1.PavVolume{}, handler.EnqueueRequestsFromMapFunc(reconcile.Each(r.ofVolume, r.ofRestored))).
		Watches(&pavv1.PavStage{}, handler.EnqueueRequestsFromMapFunc(r.ofStage)).
		Watches(&pavv1.PavSnapshot{}, handler.EnqueueRequestsFromMapFunc(r.concerned), builder.WithPredicates(storageChanges)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ofPod)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(reconcile.OfNode(r.Client, ofPod, r.ofStage)), builder.WithPredicates(reconcile.OnNodeGone)).
		WatchesRawSource(captureQueue).
		WithOptions(options).
		WithLogConstructor(observability.Requests(mgr.GetLogger(), "snapshot", observability.Snapshot, nil)).
		Complete(r)
}

// moreThanConditions passes all updates except those of conditions: a report of the reconciler itself needs no pass, but for what the
// VolumeSnapshotContent shows of it.
var moreThanConditions = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.DeepCopyObject().(*pavv1.PavSnapshot)
	after, also := e.ObjectNew.(*pavv1.PavSnapshot)
	if !ok || !also {
		return true
	}
	was, is := viewOf(observation{record: before}), viewOf(observation{record: after})
	before.ResourceVersion = after.ResourceVersion
	before.Status.Conditions = after.Status.Conditions
	before.Status.ObservedGeneration = after.Status.ObservedGeneration
	return was != is || !equality.Semantic.DeepEqual(before, after)
}}

// ends passes the ends of objects, and that they are about to end.
var ends = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetDeletionTimestamp() != nil },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
	},
}

func named(name string) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

func ofContent(_ context.Context, object client.Object) []ctrl.Request {
	content, ok := object.(*snapshotv1.VolumeSnapshotContent)
	if !ok || protocol.SnapshotOf(content) == "" {
		return nil
	}
	return named(protocol.SnapshotOf(content))
}

// ofSnapshot maps a VolumeSnapshot to the record that is made for it, and to that of the VolumeSnapshotContent that it names.
func (r *Reconciler) ofSnapshot(ctx context.Context, object client.Object) []ctrl.Request {
	requests := named(protocol.SnapshotName(object.GetUID()))
	snapshot, ok := object.(*snapshotv1.VolumeSnapshot)
	if !ok || snapshot.Spec.Source.VolumeSnapshotContentName == nil {
		return requests
	}
	content, err := reconcile.Optional(ctx, r.Client, types.NamespacedName{Name: *snapshot.Spec.Source.VolumeSnapshotContentName}, &snapshotv1.VolumeSnapshotContent{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look a VolumeSnapshotContent up")
	}
	if content == nil {
		return requests
	}
	return append(requests, ofContent(ctx, content)...)
}

// contentsBy maps an object to the records of the VolumeSnapshotContents that an index lists under its name.
func (r *Reconciler) contentsBy(index string) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []ctrl.Request {
		contents := &snapshotv1.VolumeSnapshotContentList{}
		if err := r.Client.List(ctx, contents, client.MatchingFields{index: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot look VolumeSnapshotContents up", "index", index, "key", object.GetName())
			return nil
		}
		var requests []ctrl.Request
		for i := range contents.Items {
			requests = append(requests, ofContent(ctx, &contents.Items[i])...)
		}
		return requests
	}
}

// unsettled maps a PavProvisioner to the snapshots that may wait for it.
func (r *Reconciler) unsettled(ctx context.Context, object client.Object) []ctrl.Request {
	return r.records(ctx, reconcile.SnapshotsByProvisioner, object.GetName(), func(s *pavv1.PavSnapshot) bool {
		return s.Status.Phase != pavv1.SnapshotReady && s.Status.Phase != pavv1.SnapshotRetained
	})
}

// ofVolume maps a volume to its snapshots that are not cut yet, or are still its readers.
func (r *Reconciler) ofVolume(ctx context.Context, object client.Object) []ctrl.Request {
	volume, ok := object.(*pavv1.PavVolume)
	if !ok {
		return nil
	}
	requests := r.pendingOf(ctx, volume.Name, func(s *pavv1.PavSnapshot) bool { return s.Spec.VolumeName == volume.Name })
	for _, reader := range volume.Status.Readers {
		if request := named(reader.Name)[0]; reader.Kind == kind && !slices.Contains(requests, request) {
			requests = append(requests, request)
		}
	}
	return requests
}

// ofRestored maps a volume to the snapshots of the handle that it was created from, which may wait for it.
func (r *Reconciler) ofRestored(ctx context.Context, object client.Object) []ctrl.Request {
	volume, ok := object.(*pavv1.PavVolume)
	if !ok || volume.Spec.Source == nil || volume.Spec.Source.Kind != pavv1.DataSourceSnapshot {
		return nil
	}
	storage := reconcile.Storage(volume.Spec.Provisioner, volume.Spec.Source.Handle)
	return r.records(ctx, reconcile.SnapshotsByStorage, reconcile.Bucket(storage), func(s *pavv1.PavSnapshot) bool { return reconcile.StorageOfSnapshot(s) == storage })
}

func (r *Reconciler) ofStage(ctx context.Context, object client.Object) []ctrl.Request {
	stage, ok := object.(*pavv1.PavStage)
	if !ok {
		return nil
	}
	return r.pendingOf(ctx, reconcile.Storage(stage.Spec.Provisioner, stage.Spec.VolumeHandle), func(s *pavv1.PavSnapshot) bool {
		return s.Spec.Provisioner == stage.Spec.Provisioner && s.Spec.VolumeHandle == stage.Spec.VolumeHandle
	})
}

// pendingOf returns the snapshots of a volume that are not cut yet. The key is its name or its storage, and of tells its snapshots.
func (r *Reconciler) pendingOf(ctx context.Context, key string, of func(*pavv1.PavSnapshot) bool) []ctrl.Request {
	return r.records(ctx, reconcile.SnapshotsByVolume, reconcile.Bucket(key), func(s *pavv1.PavSnapshot) bool { return of(s) && observation{record: s}.pending() })
}

// storageChanges passes the ends of records, and updates that may free storage.
var storageChanges = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*pavv1.PavSnapshot)
		after, also := e.ObjectNew.(*pavv1.PavSnapshot)
		return ok && also && (before.Status.Phase != after.Status.Phase || reconcile.StorageOfSnapshot(before) != reconcile.StorageOfSnapshot(after))
	},
}

// concerned maps an object that has, or had, the handle of a snapshot to the records that are to be deleted and may wait for it.
func (r *Reconciler) concerned(ctx context.Context, object client.Object) []ctrl.Request {
	storage := ""
	switch typed := object.(type) {
	case *pavv1.PavSnapshot:
		storage = reconcile.StorageOfSnapshot(typed)
	case *snapshotv1.VolumeSnapshotContent:
		storage = storageOfContent(typed)
	}
	if storage == "" {
		return nil
	}
	return r.records(ctx, reconcile.SnapshotsByStorage, reconcile.Bucket(storage), func(s *pavv1.PavSnapshot) bool {
		return s.Status.Phase == pavv1.SnapshotDeleting && reconcile.StorageOfSnapshot(s) == storage
	})
}

// records returns requests for the records that an index lists, and that are wanted.
func (r *Reconciler) records(ctx context.Context, index, key string, wanted func(*pavv1.PavSnapshot) bool) []ctrl.Request {
	records := &pavv1.PavSnapshotList{}
	if err := r.Client.List(ctx, records, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look snapshots up", "index", index, "key", key)
		return nil
	}
	var requests []ctrl.Request
	for i := range records.Items {
		if wanted(&records.Items[i]) {
			requests = append(requests, named(records.Items[i].Name)...)
		}
	}
	return requests
}

func ofPod(_ context.Context, object client.Object) []ctrl.Request {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == kind {
		return named(owner.Name)
	}
	return nil
}

// acts are the methods that take each step.
var acts = map[rule.Step]func(*Reconciler, context.Context, observation, rule.Decision) error{
	rule.Wait: (*Reconciler).wait, rule.RunPod: (*Reconciler).runPod, rule.StopPod: (*Reconciler).stopPod,
	stepAlign: (*Reconciler).align, stepRecordPod: (*Reconciler).recordPod, stepDropPod: (*Reconciler).dropPod,
	stepRecordLateMessage: (*Reconciler).recordLateMessage, stepRecordFailure: (*Reconciler).recordFailure,
	stepTakeOver: (*Reconciler).takeOver, stepBegin: (*Reconciler).begin, stepSync: (*Reconciler).sync, stepGiveUpSync: (*Reconciler).giveUpSync,
	stepLeave: (*Reconciler).leave, stepDropReaders: (*Reconciler).dropReaders, stepRecordCut: (*Reconciler).recordCut, stepMarkReady: (*Reconciler).markReady, stepShow: (*Reconciler).show,
	stepRevert: (*Reconciler).revert, stepReverted: (*Reconciler).markReverted, stepMarkDeleting: (*Reconciler).markDeleting,
	stepDelete: (*Reconciler).delete, stepMarkDeleted: (*Reconciler).markDeleted, stepRetain: (*Reconciler).retain,
	stepRelease: (*Reconciler).release, stepForget: (*Reconciler).forget,
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if err := r.runs.Adopt(func() ([]*pavv1.PavSnapshot, error) { return r.all(ctx) }); err != nil {
		return ctrl.Result{}, err
	}
	found := &pavv1.PavSnapshot{}
	if err := r.Client.Get(ctx, request.NamespacedName, found); apierrors.IsNotFound(err) {
		return reconcile.Result(r.absent(ctx, request.Name))
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if r.expectations.IsOld(found.Name, found.ResourceVersion) {
		return reconcile.Result(reconcile.ErrStale)
	}
	if found.Status.Handle != "" || found.Status.PlannedHandle != "" {
		r.handles.Release(found.Name) // the index has the handle now
	}
	o, err := r.gather(ctx, found)
	if err != nil {
		return reconcile.Result(err)
	}
	r.slots.Sync(owner(found), o.attempt())
	if err := r.runs.Sweep(ctx, found, o.Found); err != nil {
		return reconcile.Result(err)
	}
	d := decide(o)
	ctrl.LoggerFrom(ctx).V(2).Info("decided", observability.Step, d.Step, observability.Rule, d.Rule)
	if d.Step != rule.RunPod && d.Step != stepShow && d.Step != stepRecordLateMessage && o.progress() == attempt.Intended {
		r.slots.Release(found.Name) // it waits for something else than a slot
	}
	if err := r.take(ctx, o, d); err != nil {
		return reconcile.Result(err)
	}
	return ctrl.Result{RequeueAfter: d.After}, nil
}

// take takes the step of a decision.
func (r *Reconciler) take(ctx context.Context, o observation, d rule.Decision) error {
	if d.Step == rule.Done {
		return nil
	}
	if needsWhole(d.Step) {
		whole, err := r.whole(ctx, o.record)
		if err != nil {
			return err
		}
		o.record = whole
	}
	if begins(d.Step) && !o.retry.IsZero() {
		r.repeats.Forget(o.record.Name) // a requested attempt is reported even if it fails as before
	}
	return acts[d.Step](r, ctx, o, d)
}

// absent writes the record of a snapshot that is requested, and clears up after one that does not exist any more.
func (r *Reconciler) absent(ctx context.Context, name string) error {
	r.handles.Release(name)
	r.expectations.Forget(name)
	r.left.Forget(name)
	if err := r.runs.Forget(ctx, name); err != nil {
		return err
	}
	return r.request(ctx, name)
}
