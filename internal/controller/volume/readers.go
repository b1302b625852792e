package volume

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// gatherReaders looks up which of the recorded readers still read the volume, and which snapshots cannot exist without it.
func (r *Reconciler) gatherReaders(ctx context.Context, o *observation) error {
	var err error
	o.formerReaders, err = reading.Former(ctx, r.Client, o.volume.Status.Readers, o.volume.Spec.Provisioner, o.key(), o.volume.Name)
	if err != nil {
		return err
	}
	for _, reader := range o.volume.Status.Readers {
		if !slices.Contains(o.formerReaders, reader) {
			o.readers = append(o.readers, reader.Kind+" "+reader.Name)
		}
	}
	if o.clones, err = r.readers().Dependents(ctx, o.volume.Spec.Provisioner, o.key()); err != nil {
		return err
	}
	snapshots := &pavv1.PavSnapshotList{}
	if err := r.Client.List(ctx, snapshots, client.MatchingFields{reconcile.SnapshotsByVolume: reconcile.Bucket(o.volume.Name)}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("looking up the snapshots of volume %q: %w", o.volume.Name, err)
	}
	o.addDependents(snapshots)
	return nil
}

// key is the key of the volume as the source of other volumes.
func (o observation) key() string { return pavv1.SourceVolume(o.volume.Status.Handle) }

// hasDependents reports whether snapshots that are made of the volume now cannot exist without it.
func (o observation) hasDependents() bool {
	return o.provisioner != nil && o.provisioner.Spec.SnapshotCreation != nil && o.provisioner.Spec.SnapshotCreation.DependsOnVolume
}

// addDependents records the snapshots that need the storage of the volume: those that were made so, whatever the definition says now. Of
// those that do not say, the definition decides.
func (o *observation) addDependents(snapshots *pavv1.PavSnapshotList) {
	for i := range snapshots.Items {
		s := &snapshots.Items[i]
		if !s.Status.DependsOnVolume && !o.hasDependents() {
			continue
		}
		if s.Spec.Provisioner == o.volume.Spec.Provisioner && s.Spec.VolumeHandle == o.volume.Status.Handle {
			o.dependents = append(o.dependents, s.Name)
		}
	}
}

// confirmDependents is gatherReaders for dependents, with the snapshots and volumes that the API server has.
func (r *Reconciler) confirmDependents(ctx context.Context, o *observation) error {
	if o.provisioner != nil && podplan.CanCreateFrom(o.provisioner.Spec.VolumeCreation, pavv1.DataSourceClaim) {
		var err error
		if o.clones, err = r.readers().LiveDependents(ctx, o.volume.Spec.Provisioner, o.key()); err != nil {
			return err
		}
	}
	if !o.hasDependents() {
		return nil // the cache has those that were made before the definition changed
	}
	o.dependents = nil
	snapshots := &pavv1.PavSnapshotList{}
	labels := client.MatchingLabels{pavv1.ProvisionerLabel: o.volume.Spec.Provisioner, pavv1.VolumeLabel: workflow.Hash(o.volume.Name)}
	if err := r.Live.List(ctx, snapshots, labels); err != nil {
		return fmt.Errorf("asking for the snapshots of volume %q: %w", o.volume.Name, err)
	}
	o.addDependents(snapshots)
	return nil
}

// deletesStorage reports whether a step deletes the storage of a volume, lets others delete it, or records that it is deleted. The access of
// a volume is what keeps a bucket that another object claimed.
func (o observation) deletesStorage(next step) bool {
	switch next {
	case stepDelete:
		return !o.pending()
	case stepReleaseBucket:
		return !o.pending() && !o.retainedMeanwhile()
	case stepReleaseAccess:
		return !o.pending() && !o.retainedMeanwhile() && !o.ownsBucket()
	case stepMarkDeleted:
		return !o.pending() && o.volume.Status.Pod == nil
	default:
		return false
	}
}

// decideRead decides about a volume that is to change or to be deleted while others need its storage as it is.
func decideRead(o observation, d decision) decision {
	switch {
	case o.deletesStorage(d.Step) && len(o.dependents) > 0:
		d = waitingToDelete("SnapshotsExist", fmt.Sprintf("%d snapshots exist that cannot exist without the volume, such as PavSnapshot %q: delete their VolumeSnapshots",
			len(o.dependents), o.dependents[0]), true)
		d.Rule = "snapshots depend on the storage to delete"
	case o.deletesStorage(d.Step) && len(o.clones) > 0 && !isBeingDeleted(o.volume):
		d = waitingToDelete("SourceOfVolumes", fmt.Sprintf("volumes need the storage as their source, such as PavVolume %q: it is deleted after they are created or, if they depend on it, deleted", o.clones[0]), false)
		d.Rule = "volumes are created from the storage to delete"
	case len(o.readers) > 0 && (d.Step == stepExpand || d.Step == stepModify || o.deletesStorage(d.Step)):
		d = rule.Waiting(conditionsOfChanges[d.Step], pavv1.ReasonBeingRead, fmt.Sprintf("waiting for %s, for which a pod reads the volume", o.readers[0]), false)
		d.Rule = "a pod reads the volume that is to change"
	}
	return d
}

// oldWaits returns the types of the conditions that say that a change waits for readers, although the volume waits for something else, or
// for nothing. New readers would wait for that change.
func (o observation) oldWaits(d decision) []string {
	var types []string
	for _, c := range o.volume.Status.Conditions {
		if c.Reason == pavv1.ReasonBeingRead && (c.Type != d.Condition || d.Reason != pavv1.ReasonBeingRead) {
			types = append(types, c.Type)
		}
	}
	return types
}

// conditionsOfChanges are the conditions that report steps which change a volume.
var conditionsOfChanges = map[step]string{
	stepExpand: pavv1.VolumeExpanded, stepModify: pavv1.VolumeModified, stepDelete: pavv1.VolumeDeleted, stepMarkDeleted: pavv1.VolumeDeleted,
	stepReleaseBucket: pavv1.VolumeDeleted, stepReleaseAccess: pavv1.VolumeDeleted,
}

// dropReaders removes readers from the record that do not exist any more, and that something waits for readers.
func (r *Reconciler) dropReaders(ctx context.Context, o observation, d decision) error {
	left, err := r.readers().Without(ctx, o.volume.Status.Readers, o.formerReaders, o.volume.Spec.Provisioner, o.key(), o.volume.Name)
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		status.Readers = left
		status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool {
			return len(o.formerReaders) == 0 && slices.Contains(o.oldWaits(d), c.Type)
		})
	})
}
