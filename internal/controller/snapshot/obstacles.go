package snapshot

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// refusal returns why no pod can create the snapshot, or nil.
func (o observation) refusal() *rule.Decision {
	reason, message := o.whyRefused()
	if message == "" {
		return nil
	}
	d := rule.Waiting(pavv1.SnapshotCreated, reason, message, true)
	return &d
}

func (o observation) whyRefused() (reason, message string) {
	name := o.record.Spec.Provisioner
	switch {
	case o.provisioner == nil:
		return "NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, and only it defines how to create snapshots: create it again", name)
	case o.provisioner.DeletionTimestamp != nil:
		return "NoProvisioner", fmt.Sprintf("PavProvisioner %q is being deleted", name)
	case o.provisioner.Refusal() != "":
		return "NoProvisioner", fmt.Sprintf("PavProvisioner %q cannot be used: %s", name, o.provisioner.Refusal())
	case o.provisioner.Spec.SnapshotCreation == nil:
		return "Unsupported", fmt.Sprintf("PavProvisioner %q has no spec.snapshotCreation, so that its volumes cannot be snapshotted", name)
	}
	if !o.pending() {
		return "", ""
	}
	switch {
	case o.pv == nil || o.pv.DeletionTimestamp != nil:
		return "NoVolume", fmt.Sprintf("the PersistentVolume %q, of which the snapshot is to be made, does not exist any more", o.record.Spec.VolumeName)
	case o.volume == nil && o.whileStaged() == pavv1.SnapshotWait:
		return "Unsupported", fmt.Sprintf("PersistentVolume %q was not provisioned by PaV, which cannot keep nodes from staging it; spec.snapshotCreation.whileStaged of PavProvisioner %q is Wait", o.record.Spec.VolumeName, name)
	case o.volume != nil && o.volume.Status.Phase != pavv1.VolumeReady || o.volume != nil && o.volume.DeletionTimestamp != nil:
		return "NoVolume", fmt.Sprintf("PavVolume %q is not in use: only a volume with a claim can be snapshotted", o.volume.Name)
	}
	return "", ""
}

// changes says what keeps the snapshot from reading the volume, or "". A change of the volume that waits for readers goes first, so that
// it does not wait for ever.
func (o observation) changes() string {
	if o.volume == nil {
		return ""
	}
	status := &o.volume.Status
	switch {
	case status.CreationPod != nil:
		return fmt.Sprintf("waiting for the creation pod of volume %q, which has not ended", o.volume.Name)
	case status.Pod != nil || status.Step != "":
		return fmt.Sprintf("waiting for a pod that changes volume %q: see kubectl pav describe pv %s", o.volume.Name, o.volume.Name)
	}
	for _, change := range []string{pavv1.VolumeExpanded, pavv1.VolumeModified, pavv1.VolumeDeleted} {
		if c := meta.FindStatusCondition(status.Conditions, change); c != nil && c.Status == metav1.ConditionFalse && c.Reason == pavv1.ReasonBeingRead {
			return fmt.Sprintf("waiting for a change of volume %q, which waits for other snapshots of it", o.volume.Name)
		}
	}
	return ""
}

// syncTimeout is how long nodes may take to write to the storage what they have in memory.
const syncTimeout = 5 * time.Minute

// syncFor returns for how long the nodes were asked.
func (o observation) syncFor() time.Duration {
	asked := o.record.Status.SyncRequestTime
	if asked == nil {
		return 0
	}
	return o.now.Sub(asked.Time)
}

// unasked returns the stages that have yet to get the annotation that asks their nodes.
func (o observation) unasked() []*pavv1.PavStage {
	var stages []*pavv1.PavStage
	for _, s := range o.unsynced() {
		asked, err := time.Parse(pavv1.RetryFormat, s.Annotations[pavv1.SyncAnnotation])
		if err != nil || asked.Before(o.record.Status.SyncRequestTime.Time) {
			stages = append(stages, s)
		}
	}
	return stages
}

// awaitSync decides about nodes that were asked and have not answered.
func awaitSync(o observation) rule.Decision {
	const soon = 10 * time.Second
	left := syncTimeout - o.syncFor()
	if waited := o.syncFor(); waited < soon {
		return rule.Decision{Step: rule.Done, After: min(soon-waited, soon)} // the clock may be behind
	}
	d := rule.Waiting(pavv1.SnapshotCreated, "Syncing", "waiting for "+o.syncText(), false)
	d.After = min(left, syncTimeout)
	return d
}

// syncText says which nodes have not answered, and why, as far as they say.
func (o observation) syncText() string {
	var names []string
	why := ""
	for _, s := range o.unsynced() {
		names = append(names, s.Spec.NodeName)
		if s.Status.SyncError != "" && why == "" {
			why = fmt.Sprintf(": node %q: %s", s.Spec.NodeName, s.Status.SyncError)
		}
	}
	return reconcile.ListNodes(names) + " to write to the storage what is in memory of the volume" + why
}
