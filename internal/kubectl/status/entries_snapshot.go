package status

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// snapshotEntries returns the entries about the objects of a snapshot.
func snapshotEntries(f *Facts) []Entry {
	s := f.Snapshot
	var all []Entry
	if object := s.Object; object != nil {
		what := "created"
		if s.claim() != "" {
			what += ", of claim " + s.claim()
		}
		all = append(all, Entry{Time: object.CreationTimestamp, Object: "snapshot", What: what, rank: rankClaim})
		all = append(all, deleted(&object.ObjectMeta, "snapshot", rankEnd)...)
	}
	if content := s.Content; content != nil {
		all = append(all, Entry{Time: content.CreationTimestamp, Object: "content", What: fmt.Sprintf("created: deletion policy %s", content.Spec.DeletionPolicy), rank: rankClaim + 1})
		all = append(all, deleted(&content.ObjectMeta, "content", rankEnd)...)
	}
	if s.Record != nil {
		all = append(all, recordEntries(f, s.Record)...)
	}
	return all
}

func recordEntries(f *Facts, record *pavv1.PavSnapshot) []Entry {
	const object = "pavsnapshot"
	all := []Entry{{Time: record.CreationTimestamp, Object: object, What: "the snapshot was requested of " + record.Spec.Provisioner, rank: rankVolume}}
	if at := record.Status.CreationTime; at != nil {
		all = append(all, Entry{Time: metav1.NewTime(at.Time), Object: object, What: "cut", State: Healthy,
			Duration: took(record.CreationTimestamp.Time, at.Time), Of: "in all", rank: rankEnd})
	}
	if c := meta.FindStatusCondition(record.Status.Conditions, pavv1.SnapshotCreated); c != nil && c.Status == metav1.ConditionTrue {
		all = append(all, Entry{Time: c.LastTransitionTime, Object: object, What: "ready", State: Healthy,
			Duration: took(record.CreationTimestamp.Time, c.LastTransitionTime.Time), Of: "in all", rank: rankEnd + 1})
	}
	for _, failure := range record.Status.Failures() {
		all = append(all, failureEntry(f, object, failure)...)
	}
	return append(all, deleted(&record.ObjectMeta, object, rankEnd+1)...)
}

// requested returns when the snapshot of a pod was requested, or the zero time.
func requested(f *Facts, record string) time.Time {
	if found := f.recordNamed(record); found != nil {
		return found.CreationTimestamp.Time
	}
	return time.Time{}
}

// snapshotDetails returns the details of the objects of a snapshot.
func snapshotDetails(f *Facts) []Detail {
	s := f.Snapshot
	var all []Detail
	if object := s.Object; object != nil {
		d := Detail{Name: "Snapshot", Value: fmt.Sprintf("%s/%s", object.Namespace, object.Name)}
		if object.Status != nil && object.Status.ReadyToUse != nil && *object.Status.ReadyToUse {
			d.Value, d.State = d.Value+", ready to use", Healthy
		}
		if object.DeletionTimestamp != nil {
			d.Value += ", being deleted"
		}
		all = append(all, d)
	} else if namespace, name := s.ref(); name != "" && !f.hides(hiddenSnapshots) {
		all = append(all, Detail{Name: "Snapshot", Value: fmt.Sprintf("%s/%s, does not exist", namespace, name)})
	}
	if name := s.className(); name != "" {
		all = append(all, Detail{Name: "Class", Value: name})
	}
	if content := s.Content; content != nil {
		all = append(all, Detail{Name: "Content", Value: fmt.Sprintf("%s, deletion policy %s", content.Name, content.Spec.DeletionPolicy)})
	}
	if s.Record != nil {
		all = append(all, recordDetail("Record", s.Record.Name, s.Record))
	}
	return all
}

// recordDetail describes a PavSnapshot.
func recordDetail(name, object string, record *pavv1.PavSnapshot) Detail {
	status := &record.Status
	parts := []string{object}
	if status.Phase != "" {
		parts = append(parts, string(status.Phase))
	}
	if status.Step != "" {
		parts = append(parts, strings.ToLower(string(status.Step)))
	}
	if status.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", status.Attempt))
	}
	if status.DeletionAttempt > 1 {
		parts = append(parts, fmt.Sprintf("deletion attempt %d", status.DeletionAttempt))
	}
	if status.Handle != "" && status.Phase == pavv1.SnapshotReady {
		parts = append(parts, "handle "+status.Handle)
	}
	d := Detail{Name: name, Value: strings.Join(parts, ", ")}
	switch {
	case len(status.Failures()) > 0:
		d.State = Failing
	case status.Phase == pavv1.SnapshotReady:
		d.State = Healthy
	}
	return d
}
