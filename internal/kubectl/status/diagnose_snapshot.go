package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// snapshotStepWords maps each step of a snapshot to its kind of pod.
var snapshotStepWords = map[pavv1.SnapshotStep]string{
	pavv1.SnapshotCreating: "snapshot creation", pavv1.SnapshotReverting: "snapshot deletion", pavv1.SnapshotDeletingStep: "snapshot deletion",
}

// diagnoseSnapshot returns the finding about a snapshot.
func diagnoseSnapshot(f *Facts) Finding {
	s := f.Snapshot
	switch {
	case s.Record == nil && f.hides(hiddenRecords):
		return snapshotAsSeen(f)
	case s.Record == nil && s.isLeaving():
		return Finding{Code: "Deleting", State: Working, Summary: "the snapshot is being deleted, and PaV has no record of it"}
	case s.Record == nil:
		return diagnoseUnbegun(f)
	case f.Provisioner == nil && !f.hides(hiddenProvisioners) && s.Record.Status.Phase != pavv1.SnapshotReady && s.Record.Status.Phase != pavv1.SnapshotRetained:
		return noProvisioner(f)
	}
	status := &s.Record.Status
	switch {
	case status.Phase == pavv1.SnapshotRetained:
		return Finding{Code: "Retained", State: Waiting, Summary: "the VolumeSnapshotContent is gone, and the snapshot is retained, as its deletion policy says: the administrator decides what happens to its storage",
			Next: []Step{{Text: "when the storage is deleted, remove the record", Command: "kubectl delete pavsnapshot " + s.Record.Name}}}
	case status.Step == pavv1.SnapshotReverting:
		return snapshotReverts(f)
	case status.Phase == pavv1.SnapshotDeleting || s.isLeaving():
		return snapshotDeletion(f)
	case status.Phase == pavv1.SnapshotReady:
		return snapshotReady(f)
	default:
		return snapshotPending(f)
	}
}

// snapshotAsSeen is the finding for a user who may only read the VolumeSnapshot.
func snapshotAsSeen(f *Facts) Finding {
	object := f.Snapshot.Object
	switch {
	case object == nil || object.Status == nil:
		return snapshotUnbound(f)
	case object.Status.ReadyToUse != nil && *object.Status.ReadyToUse:
		return Finding{Code: "Healthy", State: Healthy, Summary: "the snapshot can be used"}
	case object.Status.Error != nil:
		return Finding{Code: "SnapshotFailed", State: Failing, Summary: "the snapshot could not be made yet", Reason: errorOf(object.Status.Error),
			Next: []Step{{Text: "ask the administrator of the VolumeSnapshotClass"}}}
	default:
		return Finding{Code: "Working", State: Working, Summary: "the snapshot is being made, as far as you may see"}
	}
}

// snapshotPending is the finding about a snapshot that is being made.
func snapshotPending(f *Facts) Finding {
	status := &f.Snapshot.Record.Status
	c := findFalse(status.Conditions, pavv1.SnapshotCreated)
	step := diagnoseStep(f, snapshotStepWords[status.Step], status.Pod, c)
	if step.State == Working && c != nil && f.pod(status.Pod) == nil {
		step.Reason = Brief(c.Message) // such as that nodes are asked to write what they have in memory
	}
	switch {
	case c != nil && c.Reason == "Restored":
		return Finding{Code: c.Reason, State: Failing, Summary: "the record of the snapshot was restored from a backup", Reason: c.Message}
	case status.Pod != nil && status.Phase == pavv1.SnapshotCut:
		step.Summary = "the snapshot is cut; " + step.Summary
		return afterFailure(f, "SnapshotFailed", fmt.Sprintf("the snapshot is cut; attempt %d to complete it failed", status.Attempt-1), step, status.Failure)
	case status.Pod != nil:
		return afterFailure(f, "SnapshotFailed", fmt.Sprintf("attempt %d to create the snapshot failed", status.Attempt-1), step, status.Failure)
	case status.Failure != nil:
		return snapshotFailed(f)
	case f.Provisioner != nil && f.Provisioner.Spec.SnapshotCreation == nil:
		return snapshotsUnsupported(f)
	case c != nil && c.Message != "":
		return Finding{Code: c.Reason, State: Waiting, Summary: "the snapshot is not cut yet, and waits", Reason: Brief(c.Message)}
	}
	return Finding{Code: "Working", State: Working, Summary: "the snapshot is being made"}
}

// snapshotFailed is the finding about a failed attempt: why it failed, and when the next one begins.
func snapshotFailed(f *Facts) Finding {
	status := &f.Snapshot.Record.Status
	in, text := nextAttempt(f, status.Failure)
	next := fmt.Sprintf("attempt %d follows%s", status.Attempt+1, text)
	switch cause := causeOf(status.Failure); {
	case cause == pavv1.FailureHandleInUse:
		return failed(f, "SnapshotFailed", "another object uses the storage with the snapshot's handle; "+next, status.Failure, in)
	case cause == pavv1.FailureInfeasible:
		return failed(f, "SnapshotFailed", fmt.Sprintf("the pod says that this is infeasible; %s, or when the definition changes", next), status.Failure, in)
	case status.Failure.PodName == "":
		return failed(f, "SnapshotRefused", "the snapshot creation pod cannot be created; "+next, status.Failure, in)
	case status.Phase == pavv1.SnapshotCut:
		return failed(f, "SnapshotFailed", fmt.Sprintf("the snapshot is cut; attempt %d to complete it failed, and %s", status.Attempt, next), status.Failure, in)
	default:
		return failed(f, "SnapshotFailed", fmt.Sprintf("attempt %d to create the snapshot failed; %s", status.Attempt, next), status.Failure, in)
	}
}

// snapshotReverts is the finding about a creation that is being reverted, because it failed or is not needed any more.
func snapshotReverts(f *Facts) Finding {
	status := &f.Snapshot.Record.Status
	if failure := status.DeletionFailure; failure != nil && f.pod(status.Pod) == nil {
		in, next := nextAttempt(f, failure)
		return failed(f, "RevertFailed", fmt.Sprintf("the snapshot was not created, and that cannot be reverted: deletion attempt %d failed, and the next one follows%s",
			status.DeletionAttempt, next), failure, in)
	}
	now := diagnoseStep(f, snapshotStepWords[status.Step], status.Pod, findFalse(status.Conditions, pavv1.SnapshotDeleted))
	if status.Failure == nil || now.State == Failing {
		return now
	}
	return failed(f, "SnapshotFailed", fmt.Sprintf("attempt %d to create the snapshot failed, and is being reverted before the next one", status.Attempt), status.Failure, 0)
}

// snapshotDeletion is the finding about a snapshot that is being deleted.
func snapshotDeletion(f *Facts) Finding {
	status := &f.Snapshot.Record.Status
	c := findFalse(status.Conditions, pavv1.SnapshotDeleted)
	switch {
	case status.Pod != nil && (f.pod(status.Pod) != nil || status.DeletionFailure == nil):
		return afterFailure(f, "DeletionFailed", fmt.Sprintf("deletion attempt %d failed", status.DeletionAttempt-1),
			diagnoseStep(f, snapshotStepWords[status.Step], status.Pod, c), status.DeletionFailure)
	case status.DeletionFailure != nil:
		in, next := nextAttempt(f, status.DeletionFailure)
		return failed(f, "DeletionFailed", fmt.Sprintf("deletion attempt %d failed; the next one follows%s", status.DeletionAttempt, next), status.DeletionFailure, in)
	case c != nil && c.Reason == "Restored":
		return Finding{Code: c.Reason, State: Failing, Summary: "the snapshot is to be deleted, but its record was restored from a backup", Reason: c.Message}
	case c != nil && c.Reason == reasonNeededAsSource:
		return waitsForCopies(f, f.Snapshot.Record.Spec.Provisioner, pavv1.SourceSnapshot(status.Handle), "the snapshot", c)
	case c != nil && c.Message != "":
		return Finding{Code: c.Reason, State: Waiting, Summary: "the snapshot is to be deleted, and waits", Reason: Brief(c.Message)}
	}
	return Finding{Code: "Deleting", State: Working, Summary: "the snapshot is being deleted"}
}

// snapshotReady is the finding about a snapshot that PaV has made, of which its VolumeSnapshot may not know yet.
func snapshotReady(f *Facts) Finding {
	s := f.Snapshot
	if object := s.Object; object != nil && (object.Status == nil || object.Status.ReadyToUse == nil || !*object.Status.ReadyToUse) {
		found := Finding{Code: "Working", State: Working, Summary: "the snapshot is made, and the snapshot-controller is about to pass that on to the VolumeSnapshot"}
		if c := meta.FindStatusCondition(s.Record.Status.Conditions, pavv1.SnapshotCreated); c != nil && f.Now.Sub(c.LastTransitionTime.Time) > silentAfter {
			return noSnapshotController("the snapshot is made, but the VolumeSnapshot does not say so")
		}
		return found
	}
	found := Finding{Code: "Healthy", State: Healthy, Summary: "the snapshot can be used"}
	if s.Object == nil && !f.hides(hiddenSnapshots) {
		found.Summary = "the snapshot exists, and no VolumeSnapshot is bound to it"
	}
	if size := s.Record.Status.Size; size != nil {
		found.Summary += fmt.Sprintf("; volumes that are made from it have at least %s", size.String())
	}
	if at := s.Record.Status.CreationTime; at != nil {
		found.Reason = "it was cut at " + at.UTC().Format(time.RFC3339)
	}
	return found
}

// failingSnapshots returns findings about the first snapshots that fail.
func failingSnapshots(records []pavv1.PavSnapshot) (found []Finding) {
	more := 0
	for i := range records {
		record := &records[i]
		failures := record.Status.Failures()
		if len(failures) == 0 {
			continue
		}
		if len(found) == most {
			more++
			continue
		}
		failure := failures[len(failures)-1] // that of the deletion, if both have failed
		found = append(found, Finding{Code: "SnapshotFailing", State: Failing, Summary: fmt.Sprintf("snapshot %s fails", nameOfRecord(record)), Reason: Brief(failure.Message),
			Next: []Step{{Text: "see what is wrong with it", Command: "kubectl pav describe " + refOfRecord(record).String()}}})
	}
	if more > 0 {
		found = append(found, Finding{Code: "SnapshotFailing", State: Failing, Summary: counted(more, "more snapshot") + " fail"})
	}
	return found
}

// waitsForReaders returns a finding about something that waits for the snapshots and the copies that read the volume's storage, or nil.
func waitsForReaders(f *Facts, text string) *Finding {
	snapshots, copies := f.readers()
	found := &Finding{State: Waiting, Summary: text + " when the storage is not read any more for "}
	switch {
	case len(snapshots) > 0 && len(copies) > 0:
		found.Code, found.Summary = "WaitsForSnapshot", found.Summary+list("snapshot", snapshots)+" and the copies for "+list("claim", copies)
	case len(snapshots) > 0:
		found.Code, found.Summary = "WaitsForSnapshot", found.Summary+list("snapshot", snapshots)
	case len(copies) > 0:
		found.Code, found.Summary = "WaitsForCopy", found.Summary+"the copies for "+list("claim", copies)
	default:
		return nil
	}
	for _, reader := range f.Volume.Status.Readers {
		if record := f.recordNamed(reader.Name); record != nil {
			found.Next = append(found.Next, Step{Text: "see how far the snapshot is", Command: "kubectl pav describe " + refOfRecord(record).String()})
		}
		if volume := f.copyNamed(reader.Name); volume != nil {
			found.Next = append(found.Next, seeCopy(volume))
		}
	}
	return found
}
