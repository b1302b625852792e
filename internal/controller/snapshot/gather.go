package snapshot

import (
	"cmp"
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// gather reads from the cache what the decision depends on.
func (r *Reconciler) gather(ctx context.Context, record *pavv1.PavSnapshot) (observation, error) {
	o := observation{record: record, now: r.Now(), contended: r.slots.Contended(record.Spec.Provisioner)}
	o.retry = pavv1.RetryRequested(record, record.Status.LastHandledRetry, o.now)
	if err := r.gatherObjects(ctx, r.Client, &o); err != nil {
		return o, err
	}
	if r.isContentOld(o) {
		return o, reconcile.ErrStale
	}
	var err error
	if o.Found, err = r.runs.Find(ctx, record); err != nil {
		return o, err
	}
	if err := r.gatherStages(ctx, &o); err != nil {
		return o, err
	}
	if o.is(pavv1.SnapshotDeleting) || o.reverting() {
		o.others, err = r.holders(ctx, record, handleOf(record))
	}
	if err != nil {
		return o, err
	}
	return o, r.gatherReaders(ctx, &o)
}

// handleOf returns the handle by which the storage of a snapshot is deleted.
func handleOf(record *pavv1.PavSnapshot) string { return cmp.Or(record.Status.Handle, record.Name) }

// isContentOld reports whether the cache shows a VolumeSnapshotContent that this agent has written since.
func (r *Reconciler) isContentOld(o observation) bool {
	if o.content == nil {
		r.contents.Forget(o.record.Spec.ContentRef.Name)
		return false
	}
	return r.contents.IsOld(o.content.Name, o.content.ResourceVersion)
}

// gatherObjects reads the objects that decide whether the snapshot is wanted and can be made.
func (r *Reconciler) gatherObjects(ctx context.Context, reader client.Reader, o *observation) error {
	spec := &o.record.Spec
	var err error
	if o.provisioner, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: spec.Provisioner}, &pavv1.PavProvisioner{}); err != nil {
		return err
	}
	if o.content, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: spec.ContentRef.Name}, &snapshotv1.VolumeSnapshotContent{}); err != nil {
		return err
	}
	// The snapshot-controller writes it again, with another UID, if someone has removed it by force.
	if o.content != nil && o.content.UID != spec.ContentRef.UID && protocol.SnapshotOf(o.content) != o.record.Name {
		o.content = nil
	}
	if err := r.gatherSnapshot(ctx, reader, o); err != nil || spec.VolumeName == "" {
		return err
	}
	if o.pv, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: spec.VolumeName}, &corev1.PersistentVolume{}); err != nil {
		return err
	}
	if o.pv != nil && (o.pv.Spec.CSI == nil || o.pv.Spec.CSI.Driver != spec.Provisioner || o.pv.Spec.CSI.VolumeHandle != spec.VolumeHandle) {
		o.pv = nil // another one of that name
	}
	if o.volume, err = reconcile.Optional(ctx, reader, client.ObjectKey{Name: spec.VolumeName}, &pavv1.PavVolume{}); err != nil {
		return err
	}
	o.nameTaken = false
	if o.volume != nil && !o.volume.IsOf(spec.Provisioner, spec.VolumeHandle) {
		o.nameTaken = !o.volume.IsNewOfStatic()
		o.volume = nil
	}
	return nil
}

// gatherSnapshot reads whether the VolumeSnapshot still exists. One of an administrator's VolumeSnapshotContent may be bound later than
// the record was written.
func (r *Reconciler) gatherSnapshot(ctx context.Context, reader client.Reader, o *observation) error {
	ref := o.record.Spec.SnapshotRef
	if o.content != nil && ref.UID == "" {
		bound := o.content.Spec.VolumeSnapshotRef
		ref = pavv1.SnapshotReference{Namespace: bound.Namespace, Name: bound.Name, UID: bound.UID}
	}
	if ref.UID == "" {
		o.snapshotGone = true
		return nil
	}
	snapshot, err := reconcile.Optional(ctx, reader, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &snapshotv1.VolumeSnapshot{})
	o.snapshotGone = snapshot == nil || snapshot.UID != ref.UID || snapshot.DeletionTimestamp != nil
	return err
}

// gatherStages looks up where the volume is staged, as long as that matters.
func (r *Reconciler) gatherStages(ctx context.Context, o *observation) error {
	if !o.pending() || o.record.Spec.VolumeName == "" {
		return nil
	}
	of := o.reading()
	err := r.readers().GatherStages(ctx, &of)
	o.stages, o.nodes = of.Stages, of.Nodes
	return err
}

// confirm decides again with the objects that the API server has, before a step that cannot be undone. If that gives another step, the
// cache is behind, and the error is reconcile.ErrStale.
func (r *Reconciler) confirm(ctx context.Context, o observation, next rule.Step) error {
	_, err := r.confirmed(ctx, o, next)
	return err
}

// confirmed is confirm, and returns the observation with the objects that the API server has.
func (r *Reconciler) confirmed(ctx context.Context, o observation, next rule.Step) (observation, error) {
	if err := r.gatherObjects(ctx, r.Live, &o); err != nil {
		return o, err
	}
	if decide(o).Step != next {
		return o, reconcile.ErrStale
	}
	return o, nil
}

// whole returns the record with its copies of objects, which the cache does not keep. If the API server has another version of it, the
// cache is behind, and the error is reconcile.ErrStale.
func (r *Reconciler) whole(ctx context.Context, record *pavv1.PavSnapshot) (*pavv1.PavSnapshot, error) {
	live := &pavv1.PavSnapshot{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(record), live); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading PavSnapshot %q: %w", record.Name, err)
	}
	if live.UID != record.UID || live.ResourceVersion != record.ResourceVersion {
		return nil, reconcile.ErrStale
	}
	live.SetManagedFields(nil)
	return live, nil
}
