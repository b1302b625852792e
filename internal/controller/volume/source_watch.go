package volume

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/reconcile"
)

// fromSource maps a snapshot, or a volume, its PersistentVolume or one of its stages, to the volumes that are being created from it.
func (r *Reconciler) fromSource(ctx context.Context, object client.Object) []ctrl.Request {
	provisioner, key := sourceKey(object)
	if key == "" {
		return nil
	}
	volumes, err := reconcile.VolumesFrom(ctx, r.Client, provisioner, key)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look volumes up by their source", "source", key)
		return nil
	}
	var requests []ctrl.Request
	for _, v := range volumes {
		if v.IsInTheMaking() {
			requests = append(requests, named(v.Name)...)
		}
	}
	return requests
}

// sourceKey returns the provisioner and the key of an object as the source of volumes; "" if it is none.
func sourceKey(object client.Object) (provisioner, key string) {
	switch typed := object.(type) {
	case *pavv1.PavSnapshot:
		return typed.Spec.Provisioner, pavv1.SourceSnapshot(typed.Status.Handle)
	case *pavv1.PavVolume:
		return typed.Spec.Provisioner, pavv1.SourceVolume(typed.Status.Handle)
	case *pavv1.PavStage:
		return typed.Spec.Provisioner, pavv1.SourceVolume(typed.Spec.VolumeHandle)
	case *corev1.PersistentVolume:
		if typed.Spec.CSI != nil {
			return typed.Spec.CSI.Driver, pavv1.SourceVolume(typed.Spec.CSI.VolumeHandle)
		}
	}
	return "", ""
}

// sourceOf maps a volume to the volumes of the handle that it was created from, which may wait for it.
func (r *Reconciler) sourceOf(ctx context.Context, object client.Object) []ctrl.Request {
	volume, ok := object.(*pavv1.PavVolume)
	if !ok || volume.Spec.Source == nil || volume.Spec.Source.Kind != pavv1.DataSourceClaim {
		return nil
	}
	names, err := reconcile.Concerned(ctx, r.Client, reconcile.Storage(volume.Spec.Provisioner, volume.Spec.Source.Handle))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look up the source of a volume")
	}
	var requests []ctrl.Request
	for _, name := range names {
		requests = append(requests, named(name)...)
	}
	return requests
}

// sourceChanges passes what matters to volumes that are created from a volume or a snapshot. What is only reported does not, but for what
// waits for readers; nor do readers, but for one that makes room.
var sourceChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	switch before := e.ObjectOld.(type) {
	case *pavv1.PavVolume:
		after, ok := e.ObjectNew.(*pavv1.PavVolume)
		waits := func(v *pavv1.PavVolume) []string { return observation{volume: v}.oldWaits(decision{}) }
		return !ok || makesRoom(before.Status.Readers, after.Status.Readers) || !slices.Equal(waits(before), waits(after)) ||
			!equality.Semantic.DeepEqual(volumeAsSource(before), volumeAsSource(after))
	case *pavv1.PavSnapshot:
		after, ok := e.ObjectNew.(*pavv1.PavSnapshot)
		return !ok || makesRoom(before.Status.Readers, after.Status.Readers) || !equality.Semantic.DeepEqual(snapshotAsSource(before), snapshotAsSource(after))
	default:
		return true
	}
}}

// formerReaders maps an update of a snapshot or a volume to the volumes that do not read it any more: they go on after they have left.
var formerReaders = handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	still := readersOf(e.ObjectNew)
	for _, reader := range readersOf(e.ObjectOld) {
		if reader.Kind == reading.KindVolume && !slices.Contains(still, reader) {
			queue.Add(named(reader.Name)[0])
		}
	}
}}

func readersOf(object client.Object) []pavv1.Reader {
	switch typed := object.(type) {
	case *pavv1.PavSnapshot:
		return typed.Status.Readers
	case *pavv1.PavVolume:
		return typed.Status.Readers
	default:
		return nil
	}
}

func makesRoom(before, after []pavv1.Reader) bool {
	return len(before) >= reading.MostReaders && len(after) < len(before)
}

// volumeAsSource and snapshotAsSource return statuses without readers and without what is only reported.
func volumeAsSource(volume *pavv1.PavVolume) pavv1.PavVolumeStatus {
	status := volume.Status
	status.Readers, status.Conditions, status.ObservedGeneration, status.AgentVersion = nil, nil, 0, ""
	return status
}

func snapshotAsSource(snapshot *pavv1.PavSnapshot) pavv1.PavSnapshotStatus {
	status := snapshot.Status
	status.Readers, status.Conditions, status.ObservedGeneration, status.AgentVersion = nil, nil, 0, ""
	return status
}

// phaseChanges passes the ends of volumes, and their new phases.
var phaseChanges = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*pavv1.PavVolume)
		after, also := e.ObjectNew.(*pavv1.PavVolume)
		return ok && also && (before.Status.Phase != after.Status.Phase || before.Status.Step != after.Status.Step)
	},
}
