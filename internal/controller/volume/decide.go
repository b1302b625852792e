package volume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/observability"
)

// step is the next thing to do for a volume.
type step string

const (
	// stepDone: nothing is to be done until something changes.
	stepDone step = "Done"

	// stepWait: the same, and a condition says what the volume waits for.
	stepWait step = "Wait"

	// stepAlign: make reclaim policy and finalizers of PavVolume and PersistentVolume agree.
	stepAlign step = "Align"

	// stepBegin: begin an attempt to provision: check the request, and record the first pod or, if there is none, the
	// handle and capacity.
	stepBegin step = "Begin"

	// stepCreate: the request is valid; record the creation pod or the handle and capacity.
	stepCreate step = "Create"

	// stepRefuse: the attempt fails before any pod runs; the message says why.
	stepRefuse step = "Refuse"

	// stepRunPod: create the recorded pod as soon as it has a slot.
	stepRunPod step = "RunPod"

	// stepRecordPod: the pod exists; record its UID, as it may be gone by the next pass.
	stepRecordPod step = "RecordPod"

	// stepStopPod: delete the recorded pod.
	stepStopPod step = "StopPod"

	// stepDropPod: remove a pod from the record that was never created or left nothing, and that is not needed any more.
	stepDropPod step = "DropPod"

	// stepRecordCreated: the creation pod has succeeded; record the handle and capacity.
	stepRecordCreated step = "RecordCreated"

	// stepRecordFailure: record that the pod has failed.
	stepRecordFailure step = "RecordFailure"

	// stepRecordLateMessage: the node reported the text in /pav/error after the failure was recorded; add it.
	stepRecordLateMessage step = "RecordWords"

	// stepRevert: begin to revert a creation; record the handle of the storage.
	stepRevert step = "Revert"

	// stepRecordConflict: the creation pod named storage that another object uses; record that, and stop.
	stepRecordConflict step = "RecordConflict"

	// stepAbandon: the handle of the storage that the creation pod made cannot be known; leave the storage.
	stepAbandon step = "Abandon"

	// stepReverted: record that the creation is reverted.
	stepReverted step = "Reverted"

	// stepReturnNode: the volume cannot be created for the node that the scheduler selected; let it choose again.
	stepReturnNode step = "ReturnNode"

	// stepWritePV: write the PersistentVolume.
	stepWritePV step = "WritePV"

	// stepMarkReady: record that the PersistentVolume exists.
	stepMarkReady step = "MarkReady"

	// stepMarkDeleting: record that the storage will be deleted, before any deletion pod runs.
	stepMarkDeleting step = "MarkDeleting"

	// stepDelete: record the deletion pod.
	stepDelete step = "Delete"

	// stepMarkDeleted: record that the deletion pod has succeeded.
	stepMarkDeleted step = "MarkDeleted"

	// stepDeletePV: the storage is gone; delete the PersistentVolume.
	stepDeletePV step = "DeletePV"

	// stepRetain: record that the storage now belongs to the administrator.
	stepRetain step = "Retain"

	// stepRelease: release the handle of deleted storage, so that another volume can have it.
	stepRelease step = "Release"

	// stepForget: no storage is left, or none was ever created; delete the PavVolume.
	stepForget step = "Forget"
)

// keepsTurn reports whether a volume that waits for a slot keeps its turn.
func (s step) keepsTurn() bool { return s == stepRunPod || s == stepRecordLateMessage }

// begins reports whether a step begins an attempt.
func (s step) begins() bool { return s == stepBegin || s == stepRefuse || s == stepDelete }

// needsWhole reports whether a step needs the PavVolume as the API server has it: templates see its copies of the
// claim, or the step cannot be undone.
func (s step) needsWhole() bool {
	return s == stepBegin || s == stepRefuse || s == stepCreate || s == stepRunPod || s == stepDelete || s == stepWritePV || s == stepRevert
}

// decision is a step, and what to report about it.
type decision struct {
	step step

	// condition, reason and message are those of the condition; the message is also the event's.
	condition, reason, message string

	// warning says that the administrator may have to act.
	warning bool

	// repeat says that the event is recorded again although the condition is unchanged.
	repeat bool

	// after is when to decide again if nothing changes; 0 for not before that.
	after time.Duration
}

// decide is pure: it does no I/O and reads no clock.
func decide(o snapshot) decision {
	pv := o.ownPV()
	switch {
	case o.attempt().IsUnrecorded():
		return decision{step: stepRecordPod}
	case o.lateFailure() != nil:
		return decision{step: stepRecordLateMessage}
	case o.volume.Status.FormerHandle != "" && o.volume.Status.Step != pavv1.StepDeleted && len(o.finders) == 0:
		return decision{step: stepRelease}
	case o.pending() && o.volume.Status.Step == pavv1.StepReverting:
		return decideReverting(o)
	case o.irrevocable():
		// A deletion that has begun is completed, even if the reclaim policy has changed since.
		return decideDeletion(o)
	case pv != nil:
		return decideWithPV(o, pv)
	case o.pending():
		return decidePending(o)
	default:
		return decideWithoutPV(o)
	}
}

// decideWithPV decides about a volume whose PersistentVolume exists.
func decideWithPV(o snapshot, pv *corev1.PersistentVolume) decision {
	if alignment(o) != (changes{}) {
		return decision{step: stepAlign}
	}
	if !o.released(pv) {
		return decideInUse(o, pv)
	}
	if policyOf(pv) == corev1.PersistentVolumeReclaimDelete {
		return decideDeletion(o)
	}
	if o.reclaimed(pv) {
		return decision{step: stepDone} // until the PavVolume is deleted, too
	}
	if o.volume.Status.Phase != pavv1.VolumeRetained {
		return decision{step: stepRetain}
	}
	return decision{step: stepDone}
}

// decideInUse decides about a volume that a claim has, or can still get.
func decideInUse(o snapshot, pv *corev1.PersistentVolume) decision {
	phase := o.volume.Status.Phase
	if o.volume.Status.Handle == "" && pv.Status.Phase != corev1.VolumeBound {
		return decision{step: stepDone} // a restored record counts once Kubernetes has bound its PersistentVolume
	}
	// A retained volume that waits for a new claim still belongs to the administrator.
	if o.renews(pv) || phase != pavv1.VolumeReady && (phase != pavv1.VolumeRetained || pv.Status.Phase == corev1.VolumeBound) {
		return decision{step: stepMarkReady}
	}
	if o.deleting() && phase == pavv1.VolumeReady {
		return waitingToDelete("InUse", fmt.Sprintf("PersistentVolume %q is still in use: delete its claim", pv.Name), true)
	}
	return decision{step: stepDone}
}

// decideWithoutPV decides about a volume whose PersistentVolume is gone.
func decideWithoutPV(o snapshot) decision {
	if alignment(o) != (changes{}) {
		return decision{step: stepAlign}
	}
	retained := o.volume.Status.Phase == pavv1.VolumeRetained
	if o.volume.Spec.ReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		if retained {
			return decision{step: stepDone}
		}
		return decision{step: stepRetain}
	}
	// A retained volume is deleted only by an administrator who changes its policy and deletes it.
	if retained && !o.deleting() {
		return decision{step: stepDone}
	}
	if o.claim == claimBound {
		return waitingToDelete("Lost", fmt.Sprintf("PersistentVolume %q was removed by force while its claim is bound to it; the storage is deleted when the claim is", o.volume.Name), true)
	}
	return decideDeletion(o)
}

func waiting(condition, reason, message string, warning bool) decision {
	return decision{step: stepWait, condition: condition, reason: reason, message: observability.Clip(message, observability.MaxCondition), warning: warning}
}

func waitingToDelete(reason, message string, warning bool) decision {
	return waiting(pavv1.VolumeDeleted, reason, message, warning)
}

func again(after time.Duration) decision { return decision{step: stepDone, after: after} }

// decided returns the decision that follows from a verdict on a pod; the condition reports it.
func decided(v attempt.Verdict, condition string) decision {
	d := decision{step: stepDone, after: v.After}
	switch {
	case v.Action == attempt.Run:
		d.step = stepRunPod
	case v.Action == attempt.Stop:
		d.step = stepStopPod
	case v.Message != "":
		d.step = stepWait
	}
	if v.Message != "" {
		d.condition, d.reason, d.message = condition, v.Reason, observability.Clip(v.Message, observability.MaxCondition)
		d.warning, d.repeat = v.Warning, v.Repeat
	}
	return d
}
