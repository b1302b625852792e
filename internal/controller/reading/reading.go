package reading

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// Reading is an object that reads a volume or a snapshot, or is about to, and what is known of that.
type Reading struct {
	// Kind and Name are those of the object, PavSnapshot or PavVolume.
	Kind, Name string

	// Provisioner is the name of the PavProvisioner, and VolumeName that of the PersistentVolume. VolumeHandle is the handle of the
	// storage, of which other PersistentVolumes may be, too.
	Provisioner, VolumeName, VolumeHandle string

	// Volume is the PavVolume; nil if PaV has not provisioned the volume, which PaV then never changes.
	Volume *pavv1.PavVolume

	// Snapshot is the PavSnapshot, if the object reads a snapshot. A snapshot never changes, and the other fields do not matter.
	Snapshot *pavv1.PavSnapshot

	// WhileStaged says what happens before the volume is read while nodes have it staged.
	WhileStaged pavv1.SnapshotWhileStaged

	// Stages are the PavStages of the storage; with Allow, they do not matter and may be missing. Nodes says for each of their nodes whether
	// it exists.
	Stages []pavv1.PavStage
	Nodes  map[string]bool

	// SyncRequested is when the nodes were asked to write to the storage what they have in memory; nil if they were not.
	SyncRequested *metav1.MicroTime

	// Now is when this was observed.
	Now time.Time
}

// WhileStaged returns what a definition says of volumes that are staged when they are read.
func WhileStaged(p *pavv1.PavProvisioner) pavv1.SnapshotWhileStaged {
	if p == nil || p.Spec.SnapshotCreation == nil || p.Spec.SnapshotCreation.WhileStaged == "" {
		return pavv1.SnapshotAllow
	}
	return p.Spec.SnapshotCreation.WhileStaged
}

// NoRecord says that a volume that an administrator wrote cannot be read yet.
func NoRecord(volume string) string {
	return fmt.Sprintf("waiting until PaV has recorded PersistentVolume %q, which an administrator wrote: its events say what keeps PaV from it", volume)
}

// Holds reports whether the object is a recorded reader.
func (r Reading) Holds() bool {
	return slices.ContainsFunc(r.readers(), r.isSelf)
}

// HoldsFor reports whether the object is a reader in the way that the definition asks for.
func (r Reading) HoldsFor() bool {
	return !r.isRecorded() || slices.ContainsFunc(r.readers(), func(reader pavv1.Reader) bool {
		return r.isSelf(reader) && (reader.Unstaged || r.WhileStaged != pavv1.SnapshotWait)
	})
}

// isRecorded reports whether PaV has a record of what is read.
func (r Reading) isRecorded() bool { return r.Volume != nil || r.Snapshot != nil }

// readers returns the recorded readers.
func (r Reading) readers() []pavv1.Reader {
	switch {
	case r.Snapshot != nil:
		return r.Snapshot.Status.Readers
	case r.Volume != nil:
		return r.Volume.Status.Readers
	default:
		return nil
	}
}

func (r Reading) isSelf(reader pavv1.Reader) bool {
	return reader.Kind == r.Kind && reader.Name == r.Name
}

// StagedOn returns the nodes that have the volume staged, or are about to.
func (r Reading) StagedOn() []string {
	var names []string
	for i := range r.Stages {
		if r.Stages[i].Status.Phase != pavv1.StageFailed {
			names = append(names, r.Stages[i].Spec.NodeName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// MustWait reports whether the volume is staged and must not be when it is read.
func (r Reading) MustWait() bool {
	return r.WhileStaged == pavv1.SnapshotWait && len(r.StagedOn()) > 0
}

// Unsynced returns the stages whose nodes have yet to write to the storage what they have in memory. What a node that is gone had in
// memory is lost.
func (r Reading) Unsynced() []*pavv1.PavStage {
	if r.WhileStaged != pavv1.SnapshotSync || r.SyncRequested == nil {
		return nil
	}
	var stages []*pavv1.PavStage
	for i := range r.Stages {
		s := &r.Stages[i]
		done := s.Status.SyncedTime != nil && !s.Status.SyncedTime.Before(r.SyncRequested)
		if s.Status.Phase != pavv1.StageFailed && !done && r.Nodes[s.Spec.NodeName] {
			stages = append(stages, s)
		}
	}
	return stages
}

// NextSync returns the time to request of the nodes now. It is later than all that a stage was asked for or has answered, so that none of
// these is taken for the answer: the time of the cluster is corrected, also to an earlier one.
func (r Reading) NextSync(now time.Time) metav1.MicroTime {
	for i := range r.Stages {
		known := []time.Time{askedOf(&r.Stages[i])}
		if answered := r.Stages[i].Status.SyncedTime; answered != nil {
			known = append(known, answered.Time)
		}
		for _, at := range known {
			if !at.Before(now) {
				now = at.Add(time.Microsecond)
			}
		}
	}
	return metav1.NewMicroTime(now)
}

// askedOf returns for when a stage was last asked, or the zero time.
func askedOf(s *pavv1.PavStage) time.Time {
	asked, err := time.Parse(pavv1.RetryFormat, s.Annotations[pavv1.SyncAnnotation])
	if err != nil {
		return time.Time{}
	}
	return asked
}

// Unasked returns the stages that have yet to get the annotation that asks their nodes.
func (r Reading) Unasked() []*pavv1.PavStage {
	var stages []*pavv1.PavStage
	for _, s := range r.Unsynced() {
		if askedOf(s).Before(r.SyncRequested.Time) {
			stages = append(stages, s)
		}
	}
	return stages
}

// SyncTimeout is how long nodes may take to write to the storage what they have in memory.
const SyncTimeout = 5 * time.Minute

// syncingFor returns for how long the nodes were asked.
func (r Reading) syncingFor() time.Duration {
	if r.SyncRequested == nil {
		return 0
	}
	return r.Now.Sub(r.SyncRequested.Time)
}

// IsSyncLate reports whether a node has not answered for too long.
func (r Reading) IsSyncLate() bool {
	return len(r.Unsynced()) > 0 && r.syncingFor() >= SyncTimeout
}

// AwaitSync decides about nodes that were asked and have not answered. The condition reports them.
func (r Reading) AwaitSync(condition string) rule.Decision {
	const soon = 10 * time.Second
	if waited := r.syncingFor(); waited < soon {
		return rule.Decision{Step: rule.Done, After: min(soon-waited, soon)} // the clock may be behind
	}
	d := rule.Waiting(condition, "Syncing", "waiting for "+r.SyncText(), false)
	d.After = min(SyncTimeout-r.syncingFor(), SyncTimeout)
	return d
}

// SyncText says which nodes have not answered, and why, as far as they say.
func (r Reading) SyncText() string {
	var names []string
	why := ""
	for _, s := range r.Unsynced() {
		names = append(names, s.Spec.NodeName)
		if s.Status.SyncError != "" && why == "" {
			why = fmt.Sprintf(": node %q: %s", s.Spec.NodeName, s.Status.SyncError)
		}
	}
	return reconcile.ListNodes(names) + fmt.Sprintf(" to write to the storage what is in memory of volume %q", r.VolumeName) + why
}

// Changes says what keeps the object from reading the volume, or "". A change of the volume that waits for readers goes first, so that it
// does not wait for ever. A deletion does not: it waits for what is recorded, and no more comes.
func (r Reading) Changes() string {
	if r.Volume == nil {
		return ""
	}
	status := &r.Volume.Status
	switch {
	case status.CreationPod != nil:
		return fmt.Sprintf("waiting for the creation pod of volume %q, which has not ended", r.Volume.Name)
	case status.Pod != nil || status.Step != "":
		return fmt.Sprintf("waiting for a pod that changes volume %q: see kubectl pav describe pv %s", r.Volume.Name, r.Volume.Name)
	}
	for _, change := range []string{pavv1.VolumeExpanded, pavv1.VolumeModified} {
		if c := meta.FindStatusCondition(status.Conditions, change); c != nil && c.Status == metav1.ConditionFalse && c.Reason == pavv1.ReasonBeingRead {
			return fmt.Sprintf("waiting for a change of volume %q, which waits for others that read it", r.Volume.Name)
		}
	}
	return ""
}

// IsBeingDeleted reports whether a deletion pod of a snapshot that was created is recorded or has run, or the storage is deleted: it may be
// damaged, and is no source any more.
func IsBeingDeleted(s *pavv1.PavSnapshot) bool {
	status := &s.Status
	return status.Phase == pavv1.SnapshotDeleting && (status.Pod != nil || status.Step != "" || status.DeletionFailure != nil && status.DeletionFailure.PodName != "")
}

// MostReaders is how many objects read a volume or a snapshot at once: a tenant who makes many must not fill its record.
const MostReaders = 16

// isFull reports whether there is no room for the object among the readers.
func (r Reading) isFull() bool { return !r.Holds() && len(r.readers()) >= MostReaders }

// what names what is read.
func (r Reading) what() string {
	if r.Snapshot != nil {
		return fmt.Sprintf("snapshot %q", r.Snapshot.Name)
	}
	return fmt.Sprintf("volume %q", r.VolumeName)
}

// Obstacle decides about an object that may not read yet; nil if it may. The condition reports what it waits for.
func (r Reading) Obstacle(condition string) *rule.Decision {
	var d rule.Decision
	switch changes := r.Changes(); {
	case changes != "" && !r.HoldsFor():
		d = rule.Waiting(condition, "VolumeChanges", changes, false)
	case r.MustWait():
		d = rule.Waiting(condition, "StillStaged", fmt.Sprintf("waiting for volume %q to be unstaged on %s, as spec.snapshotCreation.whileStaged of the PavProvisioner is Wait",
			r.VolumeName, reconcile.ListNodes(r.StagedOn())), false)
	case r.isFull():
		d = rule.Waiting(condition, "VolumeBusy", fmt.Sprintf("waiting for others that read %s: there are %d already", r.what(), MostReaders), false)
	default:
		return nil
	}
	return &d
}
