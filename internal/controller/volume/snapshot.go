package volume

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// snapshot is all that the decision about a volume depends on.
type snapshot struct {
	volume *pavv1.PavVolume

	// now is when it was observed.
	now time.Time

	// provisioner is the volume's; nil if it does not exist.
	provisioner *pavv1.PavProvisioner

	// registered reports whether the provisioner's CSIDriver exists.
	registered bool

	// claim is what has become of the claim that the volume is made for.
	claim claimState

	// selectedNode is the node that the scheduler has chosen for the claim's first consumer, or "";
	// waitsForNode says that it has yet to choose one.
	selectedNode string
	waitsForNode bool

	// classReplaced says that the claim's StorageClass is not what the ledger has any more.
	classReplaced bool

	// pv is the PersistentVolume of the volume's name, whoever made it; nil if there is none.
	pv *corev1.PersistentVolume

	// others are the objects, besides the volume's own, that hold the storage that the volume has or would
	// have, by driver and handle, and the stages of its PersistentVolume.
	others []reconcile.Holder

	// finders are the PavVolumes whose creation pods may name the storage yet that the volume has deleted, by name.
	finders []string

	// nodeGone says that the node of the creation pod does not exist any more, or is out of service, so
	// that nobody will tell what the pod left.
	nodeGone bool

	// pods are all pods of the volume, and orphans those of an earlier PavVolume of its name.
	pods, orphans []corev1.Pod

	// wasBound says that the record has lost its status: a claim was bound to the volume before.
	wasBound bool

	// retry is when somebody asked for the next attempt, if none has begun since; else the zero time.
	retry time.Time

	// contended says that other volumes of the provisioner wait for this one's pod to end.
	contended bool
}

// claimState is what has become of the claim that a volume is made for.
type claimState string

const (
	// claimWaits: the claim waits for this volume.
	claimWaits claimState = "Waits"

	// claimGone: the claim is deleted or under deletion, or another one has its name.
	claimGone claimState = "Gone"

	// claimElsewhere: the claim is bound to another volume.
	claimElsewhere claimState = "Elsewhere"

	// claimBound: the claim is bound to this volume, or was until its PersistentVolume was removed by force.
	claimBound claimState = "Bound"
)

// stateOf tells what has become of the volume's claim. Claim is the one of its name, or nil.
func stateOf(claim *corev1.PersistentVolumeClaim, volume *pavv1.PavVolume) claimState {
	switch {
	case claim == nil || claim.UID != volume.Spec.ClaimRef.UID || claim.DeletionTimestamp != nil:
		return claimGone
	case claim.Spec.VolumeName != "" && claim.Spec.VolumeName != volume.Name:
		return claimElsewhere
	case claim.Spec.VolumeName != "" || claim.Status.Phase == corev1.ClaimLost:
		return claimBound
	default:
		return claimWaits
	}
}

// pending reports whether the volume is in the making: no PersistentVolume was ever seen.
func (o snapshot) pending() bool {
	phase := o.volume.Status.Phase
	return phase == "" || phase == pavv1.VolumePending
}

// deleting reports whether somebody asked for the PavVolume to be deleted.
func (o snapshot) deleting() bool { return o.volume.DeletionTimestamp != nil }

// unwanted reports whether nobody waits for a volume in the making any more, or nobody can make it.
func (o snapshot) unwanted() bool {
	return o.deleting() || o.claim == claimGone || o.claim == claimElsewhere ||
		o.provisioner == nil || o.provisioner.DeletionTimestamp != nil
}

// ownPV returns the PersistentVolume if it is the volume's, or nil. A claim of another name may be
// bound to it by now, but driver and handle never change.
func (o snapshot) ownPV() *corev1.PersistentVolume {
	if o.pv == nil || o.pv.Spec.CSI == nil || o.pv.Spec.CSI.Driver != o.volume.Spec.Provisioner {
		return nil
	}
	if handle := o.volume.Status.Handle; handle != "" && handle != o.pv.Spec.CSI.VolumeHandle {
		return nil
	}
	if o.pending() && !o.wrote(o.pv) {
		return nil
	}
	return o.pv
}

// wrote reports whether a PersistentVolume of the name of a volume in the making is the one that PaV wrote. It
// need not be the claim's any more: a volume populator gives it to another claim, whose data it has from then
// on, whether or not its writing is on record by then.
func (o snapshot) wrote(pv *corev1.PersistentVolume) bool {
	if ref := pv.Spec.ClaimRef; ref != nil && ref.UID == o.volume.Spec.ClaimRef.UID {
		return true
	}
	return o.volume.Status.Handle != "" && pv.Annotations[protocol.ProvisionedBy] == o.volume.Spec.Provisioner
}

// released reports whether nobody is entitled to the PersistentVolume any more.
//
// Protocol: "External deleters MUST watch for PV changes. When pv.Status.Phase == Released …". One
// that was deleted before it was bound never gets there, as nothing binds it any more.
func (o snapshot) released(pv *corev1.PersistentVolume) bool {
	if pv.Status.Phase == corev1.VolumeReleased {
		return true
	}
	return pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound
}

// policyOf returns the reclaim policy of a PersistentVolume. What is not Delete is the administrator's to reclaim.
func policyOf(pv *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return corev1.PersistentVolumeReclaimDelete
	}
	return corev1.PersistentVolumeReclaimRetain
}

// reclaimed reports whether an administrator has asked, by the reclaim policy of the PavVolume, for a
// retained volume to be deleted after all: while a volume is retained, the policies of both were Retain. Where the
// PersistentVolume has the finalizer, its policy was Delete for a while, and the PavVolume's came from there.
func (o snapshot) reclaimed(pv *corev1.PersistentVolume) bool {
	return o.volume.Status.Phase == pavv1.VolumeRetained && policyOf(pv) != corev1.PersistentVolumeReclaimDelete &&
		o.volume.Spec.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !controllerutil.ContainsFinalizer(pv, pavv1.PVFinalizer)
}

// retainedMeanwhile reports whether the reclaim policy is not Delete any more.
func (o snapshot) retainedMeanwhile() bool {
	if pv := o.ownPV(); pv != nil {
		return policyOf(pv) != corev1.PersistentVolumeReclaimDelete
	}
	return o.volume.Spec.ReclaimPolicy != corev1.PersistentVolumeReclaimDelete
}

// attempt returns the pod of the present step, as it is recorded and as it is.
func (o snapshot) attempt() attempt.Attempt {
	status := &o.volume.Status
	a := attempt.Attempt{
		Now: o.now, Ref: status.Pod, Pods: o.pods, Step: string(status.Step), Doing: words[status.Step], NeedsResult: status.Step == pavv1.StepCreating,
		SelectedNode: status.Step == pavv1.StepCreating && status.SelectedNode != "", Contended: o.contended,
	}
	if c := meta.FindStatusCondition(status.Conditions, conditionOf(status.Step)); c != nil {
		a.Reported = c.Reason
	}
	return a
}

// pod returns the pod of the present step, or nil.
func (o snapshot) pod() *corev1.Pod { return o.attempt().Pod() }

// progress returns the state of the pod of the present step.
func (o snapshot) progress() attempt.Progress { return o.attempt().Progress() }

// lateFailure returns a recorded failure with the text in /pav/error, which was reported after the failure was
// recorded; nil if there is no such failure.
func (o snapshot) lateFailure() *pavv1.WorkflowFailure {
	return attempt.LateFailure(o.pods, o.volume.Status.Failure, o.volume.Status.DeletionFailure)
}

// nothingToDelete reports whether the definition has nothing to do about a volume that is to be deleted,
// and no node has it staged.
func (o snapshot) nothingToDelete() bool {
	return o.volume.Status.Pod == nil && o.provisioner != nil && deletionPod(o.provisioner) == nil && len(reconcile.StagedOn(o.others)) == 0
}

// irrevocable reports whether a deletion pod may have begun to delete the storage.
func (o snapshot) irrevocable() bool {
	switch o.volume.Status.Step {
	case pavv1.StepDeleted:
		return true
	case pavv1.StepDeleting:
		return o.attempt().HasBegun()
	default:
		return false
	}
}
