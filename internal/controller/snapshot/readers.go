package snapshot

import (
	"context"
	"fmt"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/workflow"
)

// inUse reports whether a volume has a claim: only such a volume can be snapshotted.
func inUse(volume *pavv1.PavVolume) bool {
	return volume.DeletionTimestamp == nil && volume.Status.Phase == pavv1.VolumeReady
}

func (r *Reconciler) readers() reading.Readers {
	return reading.Readers{Client: r.Client, Live: r.Live}
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
