package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// SnapshotRow is a snapshot. Its JSON is the output of -o json.
type SnapshotRow struct {
	// Namespace and Snapshot are those of the VolumeSnapshot.
	Namespace   string `json:"namespace"`
	Snapshot    string `json:"snapshot"`
	Provisioner string `json:"provisioner"`

	// Volume is the name of the PersistentVolume; empty if an administrator wrote the VolumeSnapshotContent.
	Volume string `json:"volume,omitempty"`

	Phase pavv1.SnapshotPhase `json:"phase"`
	Step  pavv1.SnapshotStep  `json:"step,omitempty"`

	// Size is the least capacity of a volume that can be made from the snapshot.
	Size string `json:"size,omitempty"`

	// Failures is the number of failed attempts to create or delete the snapshot, whichever is in progress.
	Failures int32 `json:"failures,omitempty"`

	// Failure is the reason for which the last attempt failed, until one succeeds.
	Failure string `json:"failure,omitempty"`

	// Record is the name of the PavSnapshot.
	Record  string      `json:"record"`
	Created metav1.Time `json:"created"`
}

// readSnapshots returns the snapshots of a provisioner, or of all if it is "", sorted by namespace and name.
func readSnapshots(ctx context.Context, reader client.Reader, provisioner string) ([]SnapshotRow, error) {
	g := &gatherer{reader, &Facts{}}
	records, err := g.records(ctx, func(record *pavv1.PavSnapshot) bool {
		return provisioner == "" || record.Spec.Provisioner == provisioner
	})
	if err == nil && g.hides(hiddenRecords) {
		err = fmt.Errorf("you may not read PavSnapshots")
	}
	if err != nil {
		return nil, err
	}
	rows := make([]SnapshotRow, 0, len(records))
	for i := range records {
		rows = append(rows, rowOfSnapshot(&records[i]))
	}
	slices.SortStableFunc(rows, func(a, b SnapshotRow) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Snapshot, b.Snapshot))
	})
	return rows, nil
}

func rowOfSnapshot(record *pavv1.PavSnapshot) SnapshotRow {
	spec, status := &record.Spec, &record.Status
	row := SnapshotRow{Namespace: spec.SnapshotRef.Namespace, Snapshot: spec.SnapshotRef.Name, Provisioner: spec.Provisioner, Volume: spec.VolumeName,
		Phase: cmp.Or(status.Phase, pavv1.SnapshotPending), Step: status.Step, Record: record.Name, Created: record.CreationTimestamp}
	if status.Size != nil {
		row.Size = status.Size.String()
	}
	switch {
	case status.DeletionFailure != nil:
		row.Failure, row.Failures = status.DeletionFailure.Message, failureCount(status.DeletionAttempt, status.Pod)
	case status.Failure != nil:
		row.Failure, row.Failures = status.Failure.Message, failureCount(status.Attempt, status.Pod)
	}
	return row
}

// renderSnapshots writes the snapshots as a table.
func renderSnapshots(env *cli.Env, rows []SnapshotRow, wide bool, now time.Time) error {
	if len(rows) == 0 {
		return none(env, "snapshots")
	}
	style := env.Style()
	table := newTable(style, wide, "NAMESPACE", "SNAPSHOT", "PROVISIONER", "VOLUME", "PHASE", "STEP", "SIZE", "FAILURES", "AGE", "RECORD")
	for i := range rows {
		r := &rows[i]
		phase, failures := cells(style, string(r.Phase), r.Failures, r.Phase == pavv1.SnapshotReady)
		row := []string{r.Namespace, r.Snapshot, r.Provisioner, dash(r.Volume), phase, dash(strings.ToLower(string(r.Step))), dash(r.Size), failures,
			cli.Duration(now.Sub(r.Created.Time)), r.Record}
		if wide {
			row = append(row, cli.Plain(strings.ReplaceAll(r.Failure, "\n", " | ")))
		}
		table.Row(row...)
	}
	return table.Write(env.Out, "")
}
