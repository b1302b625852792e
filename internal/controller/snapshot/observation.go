package snapshot

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/podrun"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/workflow"
)

// kind is the kind of the records, as owner of pods and as reader of volumes.
const kind = reading.KindSnapshot

// observation has everything that the decision about a snapshot depends on.
type observation struct {
	record *pavv1.PavSnapshot

	// now is when it was made.
	now time.Time

	// provisioner is the PavProvisioner of the snapshot; nil if it does not exist.
	provisioner *pavv1.PavProvisioner

	// content is the VolumeSnapshotContent of the record; nil if it does not exist any more.
	content *snapshotv1.VolumeSnapshotContent

	// snapshotGone says that the VolumeSnapshot does not exist any more, or is being deleted.
	snapshotGone bool

	// pv is the PersistentVolume of the volume; nil if it does not exist any more. volume is the PavVolume; nil if there is none.
	// nameTaken says that the PavVolume of the name is that of another volume.
	pv        *corev1.PersistentVolume
	volume    *pavv1.PavVolume
	nameTaken bool

	// stages are the PavStages of the volume.
	stages []pavv1.PavStage

	// nodes says for each node of the stages whether it exists.
	nodes map[string]bool

	// others are the names of other PavSnapshots and VolumeSnapshotContents that have the handle of the snapshot.
	others []string

	// volumes are the names of the PavVolumes that need the snapshot: they are being created from it, or depend on it.
	volumes []string

	// formerReaders are readers that are recorded and do not exist any more.
	formerReaders []pavv1.Reader

	podrun.Found

	// retry is when a retry was requested, if no attempt has begun since; else the zero time.
	retry time.Time

	// contended says that other objects of the provisioner wait for a slot.
	contended bool
}

// pending reports whether the snapshot is not cut yet.
func (o observation) pending() bool {
	phase := o.record.Status.Phase
	return phase == "" || phase == pavv1.SnapshotPending
}

func (o observation) is(phase pavv1.SnapshotPhase) bool { return o.record.Status.Phase == phase }

func (o observation) reverting() bool {
	return o.pending() && o.record.Status.Step == pavv1.SnapshotReverting
}

// deleting reports whether the PavSnapshot is being deleted.
func (o observation) deleting() bool { return o.record.DeletionTimestamp != nil }

// existing returns the handle of a snapshot that is not recorded and exists: an administrator wrote the VolumeSnapshotContent, or the
// record of the snapshot was lost. It is "" if none is known to exist.
func (o observation) existing() string {
	if handle := o.record.Spec.SnapshotHandle; handle != "" || o.record.Status.Attempt > 0 {
		return handle
	}
	if o.content == nil || o.content.Status == nil || o.content.Status.SnapshotHandle == nil {
		return ""
	}
	return *o.content.Status.SnapshotHandle
}

// exists reports whether a snapshot that is not recorded exists.
func (o observation) exists() bool { return o.existing() != "" }

// isTakenOverCut reports whether a snapshot whose record was lost is cut, and was not processed to the end. An administrator's is complete.
func (o observation) isTakenOverCut() bool {
	if o.record.Spec.SnapshotHandle != "" || o.content == nil || o.content.Status == nil {
		return false
	}
	ready := o.content.Status.ReadyToUse
	return ready != nil && !*ready
}

// isUnprocessed reports whether the recorded pod has created /pav/ready and has not succeeded: it goes on, or has failed after it had cut
// the snapshot, which an agent that was away may see only then.
func (o observation) isUnprocessed() bool {
	pod := o.pod()
	return workflow.IsReady(pod) && workflow.Judge(pod) != workflow.Succeeded
}

// isHandleUnknown reports whether the recorded creation pod may have made a snapshot of a handle that it chose, which will never be known.
func (o observation) isHandleUnknown() bool {
	if o.record.Status.PlannedHandle != "" || !o.attempt().HasBegun() {
		return false
	}
	pod := o.pod()
	if pod == nil {
		return true
	}
	switch result, err := workflow.ResultOf(pod); {
	case err != nil:
		return true
	case result == nil:
		return !attempt.CertainlyNeverRan(pod, o.NodeGone)
	default:
		_, unreadable := result.Unreadable[workflow.SnapshotHandleFile]
		return unreadable || result.SnapshotHandle != "" && workflow.CheckHandle(result.SnapshotHandle) != nil
	}
}

// cutTime returns the time of which the snapshot is: what was written before it is in the snapshot. With Sync, that is sure only of what
// was written before the nodes were asked.
func (o observation) cutTime() metav1.MicroTime {
	at := metav1.NewMicroTime(workflow.StartOf(o.pod()))
	if asked := o.record.Status.SyncRequestTime; asked != nil && asked.Before(&at) {
		return *asked
	}
	return at
}

// unwanted reports whether nobody wants the snapshot any more: VolumeSnapshotContent and VolumeSnapshot are both being deleted or gone.
// The annotation by which the snapshot-controller says so may never come (external-snapshotter#1446), and is not needed.
func (o observation) unwanted() bool {
	return o.contentGone() && o.snapshotGone
}

func (o observation) contentGone() bool {
	return o.content == nil || o.content.DeletionTimestamp != nil
}

// retains reports whether the storage of the snapshot stays when it is not wanted any more.
func (o observation) retains() bool {
	return o.record.Spec.DeletionPolicy != pavv1.SnapshotPolicyDelete
}

// restored reports whether the record was restored from a backup, so that it may be about storage that others have now.
func (o observation) restored() bool {
	uid := o.record.Status.RecordUID
	return uid != "" && uid != o.record.UID
}

// reading returns the snapshot as a reader of its volume.
func (o observation) reading() reading.Reading {
	return reading.Reading{
		Kind: kind, Name: o.record.Name, Provisioner: o.record.Spec.Provisioner,
		VolumeName: o.record.Spec.VolumeName, VolumeHandle: o.record.Spec.VolumeHandle, Volume: o.volume,
		WhileStaged: reading.WhileStaged(o.provisioner), Stages: o.stages, Nodes: o.nodes, SyncRequested: o.record.Status.SyncRequestTime, Now: o.now,
	}
}

// workflows are the workflows of each step; words say what a pod of the step does.
var (
	workflows = map[pavv1.SnapshotStep]string{
		pavv1.SnapshotCreating: pavv1.WorkflowSnapshotCreation, pavv1.SnapshotReverting: pavv1.WorkflowSnapshotDeletion,
		pavv1.SnapshotDeletingStep: pavv1.WorkflowSnapshotDeletion,
	}
	words = map[pavv1.SnapshotStep]string{
		pavv1.SnapshotCreating: "is creating the snapshot", pavv1.SnapshotReverting: "is reverting the creation of the snapshot",
		pavv1.SnapshotDeletingStep: "is deleting the snapshot",
	}
)

// purpose returns what the recorded pod of a snapshot is for.
func purpose(record *pavv1.PavSnapshot) podrun.Purpose {
	step := record.Status.Step
	return podrun.Purpose{Workflow: workflows[step], Condition: conditionOf(workflows[step]), Step: string(step), Doing: words[step]}
}

// attempt returns the recorded pod and its state.
func (o observation) attempt() attempt.Attempt {
	status := &o.record.Status
	a := attempt.Attempt{
		Now: o.now, Ref: status.Pod, Pods: o.Pods, Object: "pavsnapshot/" + o.record.Name, Step: string(status.Step), Doing: words[status.Step],
		// After the cut, only the end of the pod counts.
		NeedsResult: status.Step == pavv1.SnapshotCreating && o.pending(), ByPhase: workflows[status.Step] == pavv1.WorkflowSnapshotDeletion,
		Contended: o.contended, Retried: !o.retry.IsZero(),
	}
	if c := meta.FindStatusCondition(status.Conditions, conditionOf(workflows[status.Step])); c != nil {
		a.Reported = c.Reason
	}
	return a
}

func (o observation) pod() *corev1.Pod { return o.attempt().Pod() }

func (o observation) progress() attempt.Progress { return o.attempt().Progress() }

// lateFailure returns a recorded failure with the text in /pav/error, which was reported after the failure was recorded; nil if there is
// no such failure.
func (o observation) lateFailure() *pavv1.WorkflowFailure {
	return attempt.LateFailure(o.Pods, o.record.Status.Failures()...)
}

// unrecordedPod returns a pod of the snapshot that has not ended and is not the recorded one, or nil.
func (o observation) unrecordedPod() *corev1.Pod {
	recorded := o.pod()
	for i := range o.Pods {
		if pod := &o.Pods[i]; pod != recorded && !workflow.Judge(pod).IsOver() {
			return pod
		}
	}
	return nil
}

// conditionOf returns the condition that reports a workflow.
func conditionOf(kind string) string {
	if kind == pavv1.WorkflowSnapshotDeletion {
		return pavv1.SnapshotDeleted
	}
	return pavv1.SnapshotCreated
}
