package snapshot

import (
	"context"
	"fmt"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/workflow"
)

func (r *Reconciler) readers() reading.Readers {
	return reading.Readers{Client: r.Client, Live: r.Live}
}

// key is the key of the snapshot as the source of volumes.
func (o observation) key() string { return pavv1.SourceSnapshot(o.record.Status.Handle) }

// gatherReaders looks up which volumes need the snapshot, and which recorded readers do not exist any more.
func (r *Reconciler) gatherReaders(ctx context.Context, o *observation) error {
	var err error
	o.formerReaders, err = reading.Former(ctx, r.Client, o.record.Status.Readers, o.record.Spec.Provisioner, o.key(), "")
	if err != nil || !o.is(pavv1.SnapshotDeleting) {
		return err
	}
	o.volumes, err = r.readers().Dependents(ctx, o.record.Spec.Provisioner, o.key())
	return err
}

// isNeeded reports whether volumes need the snapshot, and none of its deletion pods may have begun: what may be damaged is no source.
func (o observation) isNeeded() bool {
	return len(o.volumes)+len(o.record.Status.Readers) > 0 && !reading.IsBeingDeleted(o.record)
}

// needText says which volumes need the snapshot.
func (o observation) needText() string {
	names := o.volumes
	if len(names) == 0 {
		names = []string{o.record.Status.Readers[0].Name}
	}
	return fmt.Sprintf("volumes need the snapshot as their source, such as PavVolume %q: it is deleted after they are created or, if they depend on it, deleted", names[0])
}

// dropReaders removes readers from the record that do not exist any more.
func (r *Reconciler) dropReaders(ctx context.Context, o observation, _ rule.Decision) error {
	left, err := r.readers().Without(ctx, o.record.Status.Readers, o.formerReaders, o.record.Spec.Provisioner, o.key(), "")
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) { status.Readers = left })
}

// leave removes the snapshot from the readers of its volume.
func (r *Reconciler) leave(ctx context.Context, o observation, _ rule.Decision) error {
	return r.readers().Leave(ctx, o.reading())
}

// sync asks the nodes that have the volume staged to write to the storage what they have in memory.
func (r *Reconciler) sync(ctx context.Context, o observation, _ rule.Decision) error {
	return r.readers().Sync(ctx, o.reading())
}

// giveUpSync ends an attempt for which a node has not written to the storage what it has in memory.
func (r *Reconciler) giveUpSync(ctx context.Context, o observation, d rule.Decision) error {
	if err := r.confirm(ctx, o, d.Step); err != nil {
		return err
	}
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	failure := workflow.FailureWithoutPod(pavv1.WorkflowSnapshotCreation, fmt.Errorf("waited for %s for %s", reading.SyncTimeout, o.reading().SyncText()))
	return r.failCreation(ctx, o, failure, nothing, false)
}
