package snapshot

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// holdsFor reports whether the snapshot is a reader of its volume in the way that the definition asks for. A volume that PaV has not
// provisioned is never changed by PaV, and needs no readers.
func (o observation) holdsFor() bool {
	return o.volume == nil || slices.ContainsFunc(o.volume.Status.Readers, func(reader pavv1.VolumeReader) bool {
		return o.isSelf(reader) && (reader.Unstaged || o.whileStaged() != pavv1.SnapshotWait)
	})
}

// enter makes the snapshot a reader of its volume, so that nothing changes the volume before the snapshot is cut. The write fails if the
// volume was written since it was read, so that it cannot change and be read at once. Where no node may have the volume, nodes look for
// readers after they have written a PavStage, and PaV looks for PavStages after it has written the reader: one of both sees the other.
func (r *Reconciler) enter(ctx context.Context, o observation) error {
	if o.volume == nil {
		return nil
	}
	live, err := reconcile.Optional(ctx, r.Live, client.ObjectKeyFromObject(o.volume), &pavv1.PavVolume{})
	if err != nil {
		return err
	}
	if live == nil || live.UID != o.volume.UID {
		return reconcile.ErrStale
	}
	if o.volume = live; !o.holdsFor() {
		if o.changes() != "" || live.DeletionTimestamp != nil || live.Status.Phase != pavv1.VolumeReady {
			return reconcile.ErrStale
		}
		reader := pavv1.VolumeReader{Kind: kind, Name: o.record.Name, Unstaged: o.whileStaged() == pavv1.SnapshotWait}
		if err := r.patchReaders(ctx, live, append(slices.DeleteFunc(slices.Clone(live.Status.Readers), o.isSelf), reader)); err != nil {
			return err
		}
	}
	if o.whileStaged() != pavv1.SnapshotWait {
		return nil
	}
	if o.stages, err = r.liveStages(ctx, o); err != nil {
		return err
	}
	if len(o.stagedOn()) > 0 {
		return reconcile.ErrStale // the cache will show it, and the next decision is to wait
	}
	return nil
}

// liveStages asks the API server where the volume is staged.
func (r *Reconciler) liveStages(ctx context.Context, o observation) ([]pavv1.PavStage, error) {
	stages := &pavv1.PavStageList{}
	labels := client.MatchingLabels{pavv1.ProvisionerLabel: o.record.Spec.Provisioner, pavv1.VolumeLabel: workflow.Hash(o.record.Spec.VolumeName)}
	if err := r.Live.List(ctx, stages, labels); err != nil {
		return nil, fmt.Errorf("asking where volume %q is staged: %w", o.record.Spec.VolumeName, err)
	}
	return stages.Items, nil
}

// leave removes the snapshot from the readers of its volume.
func (r *Reconciler) leave(ctx context.Context, o observation, _ rule.Decision) error {
	return r.patchReaders(ctx, o.volume, slices.DeleteFunc(slices.Clone(o.volume.Status.Readers), o.isSelf))
}

// patchReaders writes the readers of a volume, unless someone else wrote the volume meanwhile.
func (r *Reconciler) patchReaders(ctx context.Context, volume *pavv1.PavVolume, readers []pavv1.VolumeReader) error {
	changed := volume.DeepCopy()
	changed.Status.Readers = readers
	patch := client.MergeFromWithOptions(volume, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, changed, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("updating the readers of PavVolume %q: %w", volume.Name, err)
	}
	return nil
}

// sync asks the nodes that have the volume staged to write to the storage what they have in memory.
func (r *Reconciler) sync(ctx context.Context, o observation, _ rule.Decision) error {
	asked := o.record.Status.SyncRequestTime.UTC().Format(pavv1.RetryFormat)
	for _, stage := range o.unasked() {
		changed := stage.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, pavv1.SyncAnnotation, asked)
		if err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(stage, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("updating PavStage %q: %w", stage.Name, err)
		}
	}
	return nil
}

// giveUpSync ends an attempt for which a node has not written to the storage what it has in memory.
func (r *Reconciler) giveUpSync(ctx context.Context, o observation, d rule.Decision) error {
	if err := r.confirm(ctx, o, d.Step); err != nil {
		return err
	}
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	failure := workflow.FailureWithoutPod(pavv1.WorkflowSnapshotCreation, fmt.Errorf("waited for %s for %s", syncTimeout, o.syncText()))
	return r.failCreation(ctx, o, failure, nothing, false)
}
