package access

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// ofVolume reports whether a volume has access. Its clients are staging pods: a node that has the volume staged may use an account that
// was replaced, for as long as the volume is staged there.
func (o observation) ofVolume() bool { return o.record.Spec.API == pavv1.BucketAPIVolume }

// unused returns the former account that is held, and that no node uses any more, or can use; nil if there is none.
func (o observation) unused() *pavv1.GrantedAccount {
	for i := range o.record.Status.Former {
		former := &o.record.Status.Former[i]
		over := former.ExpiresAt != nil && !o.now.Before(former.ExpiresAt.Time)
		if former.Held && (over || !o.isUsed(former.Number)) {
			return former
		}
	}
	return nil
}

// isUsed reports whether a node may have the volume staged with an account. The staging pod of a stage may have the credentials of the
// account that the stage has recorded, or of any later one: those in the Secret when its containers started. A stage that has not recorded
// any may have those of any account, and so may one that is not newer than the access: an administrator may have removed an earlier access
// of the volume by force, whose accounts had the same numbers. A stage that only reserves the volume for a node has no staging pod: with the
// scope Pod, each client has a stage of its own.
func (o observation) isUsed(number int32) bool {
	for _, stage := range o.stages {
		if stage.Spec.Scope == pavv1.StagingScopePod && stage.Spec.Client == nil {
			continue
		}
		if has := stage.Status.BucketAccount; has == nil || *has <= number || !stage.CreationTimestamp.After(o.record.CreationTimestamp.Time) {
			return true
		}
	}
	return false
}

// renewsStages reports whether nodes are to stage the volume again when its account is replaced.
func (o observation) renewsStages() bool {
	return o.record.Status.Current != nil && o.provisioner != nil && o.provisioner.Spec.VolumeStaging.OnRotation == pavv1.RotationRestage
}

// outdated returns a PavStage whose staging pod has the credentials of a former account and is to be replaced, and whose node does not know
// that; nil if there is none. The node records which account its next staging pod gets by the PavVolume: until that shows the present one, a
// node that is asked would ask for the same again.
func (o observation) outdated() *pavv1.PavStage {
	current := o.record.Status.Current
	if !o.renewsStages() || o.shown == nil || *o.shown < current.Number {
		return nil
	}
	for _, stage := range o.stages {
		has := stage.Status.BucketAccount
		if has != nil && *has < current.Number && stage.Annotations[pavv1.RestageAnnotation] != strconv.Itoa(int(current.Number)) {
			return stage
		}
	}
	return nil
}

// gatherStages looks up where the volume that has access is staged, if that matters.
func (r *Reconciler) gatherStages(ctx context.Context, reader client.Reader, o *observation, by client.ListOption) error {
	o.stages, o.shown = nil, nil
	if !o.ofVolume() || podplan.HeldAccounts(o.record) == 0 {
		return nil
	}
	name, stages := volumeOf(o.record), &pavv1.PavStageList{}
	if err := reader.List(ctx, stages, by); err != nil {
		return fmt.Errorf("looking up where volume %q is staged: %w", name, err)
	}
	for i := range stages.Items {
		if stage := &stages.Items[i]; stage.Spec.VolumeName == name && reconcile.HoldsVolume(stage) {
			o.stages = append(o.stages, stage)
		}
	}
	if !o.renewsStages() {
		return nil
	}
	volume, err := reconcile.Optional(ctx, reader, client.ObjectKey{Name: name}, &pavv1.PavVolume{})
	if volume != nil {
		o.shown = volume.Status.BucketAccount
	}
	return err
}

// volumeOf returns the name of the volume that has access.
func volumeOf(record *pavv1.PavBucketAccess) string {
	return protocol.VolumeName(record.Spec.Requester.UID)
}

// cachedStages and liveStages select the PavStages of the volume in the cache, and at the API server.
func cachedStages(record *pavv1.PavBucketAccess) client.ListOption {
	return client.MatchingFields{reconcile.StagesByVolume: reconcile.Bucket(volumeOf(record))}
}

func liveStages(record *pavv1.PavBucketAccess) client.ListOption {
	return client.MatchingLabels{pavv1.VolumeLabel: workflow.Hash(volumeOf(record))}
}

// letGo records that no node uses an account any more that was replaced: it is revoked when its time is over.
func (r *Reconciler) letGo(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	unused := o.unused()
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavBucketAccessStatus) {
		for i := range status.Former {
			if status.Former[i].Number == unused.Number {
				status.Former[i].Held = false
			}
		}
	})
}

// renewStage asks a node to stage the volume again, with the present account.
func (r *Reconciler) renewStage(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	stage := o.outdated()
	asked := stage.DeepCopy()
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, pavv1.RestageAnnotation, strconv.Itoa(int(o.record.Status.Current.Number)))
	err = r.Client.Patch(ctx, asked, client.MergeFromWithOptions(stage, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("asking node %q to stage volume %q again: %w", stage.Spec.NodeName, stage.Spec.VolumeName, err)
	}
	return nil
}

// ofStage maps a PavStage to the access of its volume, if the volume is a bucket.
func ofStage(_ context.Context, object client.Object) []ctrl.Request {
	stage, ok := object.(*pavv1.PavStage)
	if !ok || stage.Spec.Bucket == nil {
		return nil
	}
	return ofVolumeNamed(stage.Spec.VolumeName)
}

// ofPavVolume maps a PavVolume to its access.
func ofPavVolume(_ context.Context, object client.Object) []ctrl.Request {
	return ofVolumeNamed(object.GetName())
}

func ofVolumeNamed(name string) []ctrl.Request {
	uid, ok := strings.CutPrefix(name, protocol.VolumeName(""))
	if !ok {
		return nil
	}
	return named(protocol.AccessRecord(types.UID(uid)))
}

// onAccountShown is for PavVolumes that show another account than before.
var onAccountShown = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*pavv1.PavVolume)
		after, also := e.ObjectNew.(*pavv1.PavVolume)
		return ok && also && !equality.Semantic.DeepEqual(before.Status.BucketAccount, after.Status.BucketAccount)
	},
}
