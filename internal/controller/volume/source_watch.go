package volume

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// fromSource maps a snapshot, or a volume or one of its stages, to the volumes that are being created from it.
func (r *Reconciler) fromSource(ctx context.Context, object client.Object) []ctrl.Request {
	record := ""
	switch typed := object.(type) {
	case *pavv1.PavSnapshot:
		record = pavv1.RecordOfSnapshot(typed.Name)
	case *pavv1.PavVolume:
		record = pavv1.RecordOfVolume(typed.Name)
	case *pavv1.PavStage:
		record = pavv1.RecordOfVolume(typed.Spec.VolumeName)
	}
	volumes := &pavv1.PavVolumeList{}
	if err := r.Client.List(ctx, volumes, client.MatchingFields{reconcile.VolumesBySource: reconcile.Bucket(record)}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look volumes up by their source", "source", record)
		return nil
	}
	var requests []ctrl.Request
	for i := range volumes.Items {
		if v := &volumes.Items[i]; v.Spec.Source != nil && v.Spec.Source.Record() == record && isPending(v) {
			requests = append(requests, named(v.Name)...)
		}
	}
	return requests
}

// sourceOf maps a volume to the volume that it was created from, which may wait for it.
func sourceOf(_ context.Context, object client.Object) []ctrl.Request {
	volume, ok := object.(*pavv1.PavVolume)
	if !ok || volume.Spec.Source == nil || volume.Spec.Source.Kind != pavv1.DataSourceClaim {
		return nil
	}
	return named(volume.Spec.Source.VolumeName)
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
