package volume

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
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

// pod returns the pod of the present step, or nil.
func (o snapshot) pod() *corev1.Pod {
	ref := o.volume.Status.Pod
	if ref == nil {
		return nil
	}
	pod := podNamed(o.pods, ref.Namespace, ref.Name)
	if pod == nil || ref.UID != "" && pod.UID != ref.UID {
		return nil
	}
	return pod
}

func podNamed(pods []corev1.Pod, namespace, name string) *corev1.Pod {
	for i := range pods {
		if pods[i].Namespace == namespace && pods[i].Name == name {
			return &pods[i]
		}
	}
	return nil
}

// unrecorded reports whether the pod of the present step exists, and the ledger does not say so yet.
func (o snapshot) unrecorded() bool {
	return o.volume.Status.Pod != nil && o.volume.Status.Pod.UID == "" && o.pod() != nil
}

// progress is how far the pod of the present step is.
type progress string

const (
	// podNone: no pod is recorded.
	podNone progress = "None"

	// podIntended: the pod is recorded, and not known to have been created.
	podIntended progress = "Intended"

	// podRunning: containers of the pod run or may run yet.
	podRunning progress = "Running"

	// podStopping: the pod is being deleted, and containers of it may still run.
	podStopping progress = "Stopping"

	// podReporting: all containers have ended, and the agent of the node has yet to tell what they left in /pav.
	podReporting progress = "Reporting"

	// podSucceeded: all containers have ended well, by themselves.
	podSucceeded progress = "Succeeded"

	// podFailed: no container runs any more, and the pod did not end well.
	podFailed progress = "Failed"

	// podVanished: the pod was created, and is gone without an outcome.
	podVanished progress = "Vanished"
)

// reportPatience is how long a failed pod's last words are waited for; without them, its failure is
// reported all the same, and again when they come. What a pod that succeeded left is waited for as long as its node exists.
const reportPatience = 5 * time.Second

func (o snapshot) progress() progress {
	ref, pod := o.volume.Status.Pod, o.pod()
	switch {
	case ref == nil:
		return podNone
	case pod == nil && ref.UID == "":
		return podIntended
	case pod == nil:
		return podVanished
	}
	switch workflow.Observe(pod) {
	case workflow.Stopping:
		return podStopping
	case workflow.Succeeded:
		if o.mayTell(pod) {
			return podReporting
		}
		return podSucceeded
	case workflow.Failed:
		if o.mayTell(pod) && pod.DeletionTimestamp == nil && within(o.now, endOf(pod), reportPatience) {
			return podReporting
		}
		return podFailed
	default:
		return podRunning
	}
}

// begun reports whether the pod of the present step was created, as far as is known.
func (o snapshot) begun() bool {
	p := o.progress()
	return p != podNone && p != podIntended
}

// mayTell reports whether something that matters may come from the node of a pod that is over: what a
// creation pod that succeeded left in /pav, or the last words of one that failed.
func (o snapshot) mayTell(pod *corev1.Pod) bool {
	if _, told := pod.Annotations[pavv1.ResultAnnotation]; told || !workflow.Started(pod) {
		return false
	}
	return pod.Status.Phase == corev1.PodFailed || o.volume.Status.Step == pavv1.StepCreating
}

// lateMessage returns a recorded failure as it is to be recorded by now: with the pod's last words, which
// came when it was on record already. It returns nil where there is no such failure.
func (o snapshot) lateMessage() *pavv1.WorkflowFailure {
	for _, failure := range []*pavv1.WorkflowFailure{o.volume.Status.Failure, o.volume.Status.DeletionFailure} {
		if failure == nil {
			continue
		}
		pod := podNamed(o.pods, failure.PodNamespace, failure.PodName)
		if pod == nil || workflow.Observe(pod) != workflow.Failed {
			continue
		}
		without, told := failureOf(failure.Workflow, pod, ""), failureOf(failure.Workflow, pod, podErrorMessage(pod))
		if failure.Message == without.Message && failure.Message != told.Message {
			told.Time = failure.Time
			return told
		}
	}
	return nil
}

// podErrorMessage returns what the node has told that a pod wrote to /pav/error, or "".
func podErrorMessage(pod *corev1.Pod) string {
	if result, err := workflow.ResultOf(pod); err == nil && result != nil {
		return result.Error
	}
	return ""
}

// failureOf returns the failure of a pod with such words as it is recorded.
func failureOf(kind string, pod *corev1.Pod, words string) *pavv1.WorkflowFailure {
	failure := workflow.Failure(kind, pod, words)
	failure.Message = observability.Clip(failure.Message, maxCondition)
	return failure
}

// endOf returns when the last container of a pod ended, or the zero time.
func endOf(pod *corev1.Pod) time.Time {
	var end time.Time
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if ended := s.State.Terminated; ended != nil && ended.FinishedAt.After(end) {
				end = ended.FinishedAt.Time
			}
		}
	}
	return end
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
		p := o.progress()
		return p != podNone && p != podIntended
	default:
		return false
	}
}

// neverBound reports whether a pod that is over was never bound to a node, so that nothing of it ever ran.
func neverBound(pod *corev1.Pod) bool {
	return pod != nil && pod.Spec.NodeName == "" && !workflow.Started(pod)
}
