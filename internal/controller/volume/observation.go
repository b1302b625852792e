package volume

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// observation has everything that the decision about a volume depends on.
type observation struct {
	volume *pavv1.PavVolume

	// now is when it was taken.
	now time.Time

	// provisioner is the PavProvisioner of the volume; nil if it does not exist.
	provisioner *pavv1.PavProvisioner

	// registered says that the CSIDriver of the provisioner exists.
	registered bool

	// registeringFor is how much longer the PersistentVolume waits for nodes to register a driver that is new; 0 if it does not.
	registeringFor time.Duration

	// claim is the state of the claim that the volume is provisioned for.
	claim claimState

	// selectedNode is the node that the scheduler has selected for the claim's first consumer, or "";
	// waitsForNode says that it has yet to select one.
	selectedNode string
	waitsForNode bool

	// classReplaced says that the claim's StorageClass has changed since it was recorded.
	classReplaced bool

	// pv is the PersistentVolume of the volume's name, which PaV need not have created; nil if there is none.
	pv *corev1.PersistentVolume

	// user is the claim that is bound to the PersistentVolume; nil if there is none. It has of its status what is said of the volume.
	user *corev1.PersistentVolumeClaim

	// attributesClass is the VolumeAttributesClass that the user names, if the volume does not have its attributes; nil if it does
	// not exist.
	attributesClass *storagev1.VolumeAttributesClass

	// attributes are those that the volume has; without a class if it has none.
	attributes pavv1.VolumeAttributes

	// dropsAttributes says that the API server drops what objects say of attributes of volumes.
	dropsAttributes bool

	// dropsSizes says that the API server drops what a claim says of an expansion in progress.
	dropsSizes bool

	// others are the objects, without the volume's own, that use the storage that the volume has or would have, by driver
	// and handle, and the PavStages of its PersistentVolume.
	others []reconcile.Holder

	// readers are the objects for which pods read the storage, and formerReaders those that are recorded and do not exist any more.
	readers       []string
	formerReaders []pavv1.Reader

	// dependents are the names of PavSnapshots that cannot exist without the storage, and clones those of PavVolumes that need it: they
	// are being created from it, or depend on it.
	dependents, clones []string

	// source is what the volume is created from; nil if it is created empty, or is provisioned already.
	source *source

	// bucket is what is known of the bucket that the volume is; nil if it is none.
	bucket *bucket

	// finders are the names of PavVolumes whose creation pods may still name the storage that the volume has deleted.
	finders []string

	// nodeGone says that the node of the creation, expansion or modification pod does not exist any more, or is out of service, so that the files of
	// the pod will not be reported.
	nodeGone bool

	// pods are all pods of the volume, and orphans those of an earlier PavVolume of its name.
	pods, orphans []corev1.Pod

	// wasBound says that a claim was bound to the volume before the PavVolume lost its status.
	wasBound bool

	// retry is when a retry was requested, if no attempt has begun since; else the zero time.
	retry time.Time

	// contended says that other volumes of the provisioner wait for a slot.
	contended bool
}

// claimState is the state of the claim that a volume is provisioned for.
type claimState string

const (
	// claimWaits: the claim waits for this volume.
	claimWaits claimState = "Waits"

	// claimGone: the claim is deleted or being deleted, or was replaced by another one.
	claimGone claimState = "Gone"

	// claimElsewhere: the claim is bound to another volume.
	claimElsewhere claimState = "Elsewhere"

	// claimBound: the claim is bound to this volume, or was until its PersistentVolume was removed by force.
	claimBound claimState = "Bound"
)

// stateOf returns the state of the volume's claim. Claim is the claim of its name, or nil.
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

// pending reports whether the volume is not provisioned yet: it never had a PersistentVolume.
func (o observation) pending() bool { return o.volume.IsInTheMaking() }

// deleting reports whether the PavVolume is being deleted.
func (o observation) deleting() bool { return o.volume.DeletionTimestamp != nil }

// unwanted reports whether a pending volume is not needed any more, or cannot be provisioned.
func (o observation) unwanted() bool {
	return o.deleting() || o.claim == claimGone || o.claim == claimElsewhere || o.lacksProvisioner() && o.volume.Spec.Source == nil
}

// lacksProvisioner reports whether the PavProvisioner does not exist, or is being deleted. The record of a volume with a source is kept
// then: it is what keeps the source from being deleted.
func (o observation) lacksProvisioner() bool {
	return o.provisioner == nil || o.provisioner.DeletionTimestamp != nil
}

// ownPV returns the PersistentVolume if it is that of the volume, or nil. Another claim may be bound to it by now, but driver
// and handle never change.
func (o observation) ownPV() *corev1.PersistentVolume {
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

// wrote reports whether the PersistentVolume with the name of a pending volume is the one that PaV wrote. It may belong to
// another claim by now: a volume populator binds it to the claim whose data it has written, perhaps before PaV records that
// the PersistentVolume exists.
func (o observation) wrote(pv *corev1.PersistentVolume) bool {
	if ref := pv.Spec.ClaimRef; ref != nil && ref.UID == o.volume.Spec.ClaimRef.UID {
		return true
	}
	return o.volume.Status.Handle != "" && pv.Annotations[protocol.ProvisionedBy] == o.volume.Spec.Provisioner
}

// released reports whether no claim has the PersistentVolume any more, or can get it.
//
// Protocol: "External deleters MUST watch for PV changes. When pv.Status.Phase == Released …". A PersistentVolume that is
// deleted before it is bound never becomes Released, as Kubernetes does not bind it any more.
func (o observation) released(pv *corev1.PersistentVolume) bool {
	if pv.Status.Phase == corev1.VolumeReleased {
		return true
	}
	return pv.DeletionTimestamp != nil && pv.Status.Phase != corev1.VolumeBound
}

// policyOf returns the reclaim policy of a PersistentVolume. With any policy but Delete, the administrator reclaims it.
func policyOf(pv *corev1.PersistentVolume) corev1.PersistentVolumeReclaimPolicy {
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return corev1.PersistentVolumeReclaimDelete
	}
	return corev1.PersistentVolumeReclaimRetain
}

// reclaimed reports whether the administrator has set the reclaim policy of the PavVolume to Delete, so that a retained
// volume is deleted after all. When a volume becomes retained, the policies of both objects are Retain. If the
// PersistentVolume has the finalizer, its policy was Delete for a while, and was copied to the PavVolume.
func (o observation) reclaimed(pv *corev1.PersistentVolume) bool {
	return o.volume.Status.Phase == pavv1.VolumeRetained && policyOf(pv) != corev1.PersistentVolumeReclaimDelete &&
		o.volume.Spec.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !controllerutil.ContainsFinalizer(pv, pavv1.PVFinalizer)
}

// retainedMeanwhile reports whether the reclaim policy is not Delete any more.
func (o observation) retainedMeanwhile() bool {
	if pv := o.ownPV(); pv != nil {
		return policyOf(pv) != corev1.PersistentVolumeReclaimDelete
	}
	return o.volume.Spec.ReclaimPolicy != corev1.PersistentVolumeReclaimDelete
}

// attempt returns the recorded pod and its state.
func (o observation) attempt() attempt.Attempt {
	status := &o.volume.Status
	a := attempt.Attempt{
		Now: o.now, Ref: status.Pod, Pods: o.pods, Object: "pavvolume/" + o.volume.Name, Step: string(status.Step), Doing: words[status.Step],
		NeedsResult: status.Step == pavv1.StepCreating || status.Step == pavv1.StepExpanding, ByPhase: workflows[status.Step] == pavv1.WorkflowDeletion,
		SelectedNode: status.Step == pavv1.StepCreating && status.SelectedNode != "", Contended: o.contended, Retried: !o.retry.IsZero(),
	}
	if c := meta.FindStatusCondition(status.Conditions, conditionOf(status.Step)); c != nil {
		a.Reported = c.Reason
	}
	return a
}

// pod returns the recorded pod, or nil if Kubernetes does not have it.
func (o observation) pod() *corev1.Pod { return o.attempt().Pod() }

// progress returns the state of the recorded pod.
func (o observation) progress() attempt.Progress { return o.attempt().Progress() }

// unrecordedPod returns a pod of the volume that has not ended and is not the recorded one, or nil. Two leaders are needed for
// that: one removed the pod from the record before the other created it. It is being deleted; until it has ended, it may
// still have effects.
func (o observation) unrecordedPod() *corev1.Pod {
	recorded := o.pod()
	for i := range o.pods {
		if pod := &o.pods[i]; pod != recorded && !workflow.Judge(pod).IsOver() {
			return pod
		}
	}
	return nil
}

// lateFailure returns a recorded failure with the text in /pav/error, which was reported after the failure was
// recorded; nil if there is no such failure.
func (o observation) lateFailure() *pavv1.WorkflowFailure {
	return attempt.LateFailure(o.pods, o.volume.Status.Failures()...)
}

// isReportedLate reports whether a node reported after a failure was recorded what is still to be recorded of it.
func (o observation) isReportedLate() bool { return o.lateFailure() != nil || o.lateCapacity() != nil }

// nothingToDelete reports whether the definition has no deletion pod, or the volume is a bucket that is given up, and the volume is staged
// on no node.
func (o observation) nothingToDelete() bool {
	if o.volume.Status.Pod != nil || len(reconcile.StagedOn(o.others)) > 0 {
		return false
	}
	if o.ofBucket() {
		return !o.bucketLeft() // another record deletes the bucket
	}
	return o.provisioner != nil && deletionPod(o.provisioner) == nil
}

// irrevocable reports whether a deletion pod may have begun to delete the storage.
func (o observation) irrevocable() bool {
	switch o.volume.Status.Step {
	case pavv1.StepDeleted:
		return true
	case pavv1.StepDeleting:
		return o.attempt().HasBegun()
	default:
		return false
	}
}
