package metrics

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func (c *Gauges) collectSnapshots(to chan<- prometheus.Metric, at time.Time) {
	phases, fails, pends := Series{}, Series{}, Series{}
	for _, object := range c.Snapshots.List() {
		snapshot, ok := object.(*pavv1.PavSnapshot)
		if !ok {
			continue
		}
		name, phase := snapshot.Spec.Provisioner, cmp.Or(snapshot.Status.Phase, pavv1.SnapshotPending)
		phases[Labels{name, string(phase)}]++
		if step, since := snapshotFailure(&snapshot.Status, phase); step != "" {
			fails.AtLeast(Labels{name, step}, at.Sub(since).Seconds())
		}
		if kind := snapshotWork(phase); kind != "" {
			pends.AtLeast(Labels{name, string(phase)}, at.Sub(began(snapshot.Status.Conditions, kind, metav1.NewTime(at))).Seconds())
		}
	}
	phases.Send(snapshotsDesc, to)
	fails.Send(snapshotFailingDesc, to)
	pends.Send(snapshotPendingDesc, to)
}

// snapshotFailure is failure for a snapshot.
func snapshotFailure(status *pavv1.PavSnapshotStatus, phase pavv1.SnapshotPhase) (step string, since time.Time) {
	switch {
	case status.DeletionFailure != nil && phase == pavv1.SnapshotPending:
		return StepRevert, began(status.Conditions, pavv1.SnapshotDeleted, status.DeletionFailure.Time)
	case status.DeletionFailure != nil:
		return StepDelete, began(status.Conditions, pavv1.SnapshotDeleted, status.DeletionFailure.Time)
	case status.Failure != nil && snapshotWork(phase) == pavv1.SnapshotCreated:
		return StepCreate, began(status.Conditions, pavv1.SnapshotCreated, status.Failure.Time)
	}
	return "", time.Time{}
}

// snapshotWork returns the condition that reports what is done to a snapshot in a phase, or "" if nothing is.
func snapshotWork(phase pavv1.SnapshotPhase) string {
	switch phase {
	case pavv1.SnapshotPending, pavv1.SnapshotCut:
		return pavv1.SnapshotCreated
	case pavv1.SnapshotDeleting:
		return pavv1.SnapshotDeleted
	case pavv1.SnapshotReady, pavv1.SnapshotRetained:
	}
	return ""
}
