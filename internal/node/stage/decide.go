package stage

import (
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// observation is what is, as far as the next step depends on it.
type observation struct {
	exists       bool             // there is a PavStage
	terminating  bool             // there is one, but it is on its way out and holds nothing
	leftover     bool             // there is none, but the node has a directory of one
	hasFinalizer bool             // it has its finalizer
	phase        pavv1.StagePhase // how far it is
	thisBoot     bool             // its mounts, if any, were made since the node's last start
	claimOnly    bool             // it only claims the volume, and has no staging pod
	restaging    bool             // the volume is staged anew under its clients
	mismatch     bool             // it is of another kind than what is asked for

	validated          bool // the volume is valid, or needs no validation pod
	validationIntended bool // a validation pod was recorded, so it may have run
	validationPod      workflow.State

	stagingIntended bool // a staging pod was recorded, so it may have run
	stagingPod      workflow.State
	outcomeHeld     bool          // the staging pod has its finalizer
	ready           bool          // /pav/ready exists
	attached        bool          // the volume is mounted for clients
	settling        time.Duration // for how long yet it has to be seen whether a mount comes late over what is attached
	covering        bool          // running clients may have what is attached already
	published       bool          // targets are on record as having the volume
	occupied        bool          // one of them really has it; only known where it matters
	inUse           bool          // one of them has it for a pod that still runs; only known where the volume is to be unstaged
	pvReplaced      bool          // the persistent volume that it was staged for has gone, and another one stands for the volume
	clients         bool          // stages of client pods hang on this one
	given           bool          // the staging pod that was recorded has been given /pav; only known where the pod is gone
	pavInUse        bool          // /pav is still mounted for a pod of the stage

	unstagingWanted   bool // the provisioner has an unstaging pod
	unstagingIntended bool // an unstaging pod was recorded, so it may have run
	unstagingPod      workflow.State

	backoff   time.Duration // until the next attempt of what has failed
	reportIn  time.Duration // until it is to be told what keeps a pod from starting, if anything does
	reportDue bool          // that is to be told now
	full      bool          // the node has no free slot for the pod that is to stage it; only known where one is to be created
	stuck     bool          // the unstaging pod has been kept from starting for long
}

// due returns when to look again though nothing has changed; never where it is 0.
func (o observation) due() time.Duration {
	var due time.Duration
	waits := []time.Duration{o.backoff, o.reportIn, o.settling}
	if o.full {
		waits = append(waits, roomPeriod)
	}
	for _, wait := range waits {
		if wait > 0 && (due == 0 || wait < due) {
			due = wait
		}
	}
	return due
}

// step is what to do next.
type step int

const (
	stepDone           step = iota // nothing is left to do
	stepYield                      // somebody else has to act first
	stepOccupied                   // clients have to go first
	stepInUse                      // clients that still run have to end first
	stepPVReplaced                 // clients of another persistent volume have to go first
	stepRefuse                     // what is there is not what is asked for
	stepSweep                      // remove what a PavStage that is gone has left
	stepWait                       // until something changes
	stepReport                     // tell what keeps a pod from starting
	stepRecord                     // write the PavStage
	stepReplace                    // replace the record of a failed attempt by a new PavStage
	stepRunValidation              // run the validation pod
	stepAdmit                      // record that the volume is valid
	stepReject                     // record that the validation pod failed, and begin to revert
	stepRunStaging                 // run the staging pod
	stepAttach                     // mount the volume for clients
	stepBlockOnClients             // the volume was unmounted while clients have it, who have to go first
	stepOverMount                  // mount it over what running clients have
	stepConfirm                    // record that the volume is available
	stepFail                       // record that the staging pod failed, and begin to revert
	stepRevert                     // begin to unstage
	stepUnstageClients             // unstage the stages of client pods
	stepUnpublish                  // take the volume from clients
	stepDetach                     // unmount it
	stepStop                       // stop the validation or staging pod
	stepRunUnstaging               // run the unstaging pod
	stepGiveUp                     // stop an unstaging pod that cannot start
	stepRetry                      // record that the unstaging pod failed, and begin the next attempt
	stepRenew                      // begin the next attempt to stage the volume anew
	stepClean                      // remove /pav
	stepForget                     // let the pods and the PavStage go
)

// orReport tells what keeps a pod from starting before it waits for the pod.
func orReport(o observation, next step) step {
	if next == stepWait && o.reportDue {
		return stepReport
	}
	return next
}

// settled reports whether nothing of a stage is left but, maybe, the record of a failure.
func (o observation) settled() bool {
	return !o.exists || o.phase == pavv1.StageFailed && !o.hasFinalizer
}

// decideStage returns the next step towards a volume that is available on the node.
func decideStage(o observation) step {
	switch {
	case o.leftover && o.occupied:
		// Nobody but kubelet says when clients are gone, by unstaging.
		return stepOccupied
	case o.leftover:
		return decideLeftover(o)
	case o.terminating:
		return stepYield
	case !o.exists:
		return stepRecord
	case o.attached && o.settled():
		return stepDetach
	case o.settled():
		return stepReplace
	}
	return decideFound(o)
}

// decideFound returns the next step where there is a stage, which may not be what is asked for.
func decideFound(o observation) step {
	switch {
	case o.pvReplaced && o.occupied:
		return stepPVReplaced
	case o.pvReplaced:
		return stepRevert
	case o.mismatch:
		return stepRefuse
	}
	return decideBegun(o)
}

func decideBegun(o observation) step {
	switch {
	case o.restaging && !o.thisBoot:
		// No client is left that the volume could be staged anew under.
		return stepRevert
	case o.restaging:
		return decideRestaging(o)
	case o.phase == pavv1.StageFailed || o.phase == pavv1.StageUnstaging:
		return decideUnstage(o)
	case !o.thisBoot:
		// The mounts are gone with the boot that they were made in, but not what else staging did.
		return stepRevert
	case !o.validated:
		return decideValidation(o)
	}
	return decideStaging(o)
}

// decideLeftover returns the next step where a PavStage is gone, but not what it has left, and no client has it.
func decideLeftover(o observation) step {
	if o.pavInUse {
		return stepWait // Its pod was told to end, and has not yet.
	}
	return stepSweep
}

func decideValidation(o observation) step {
	switch o.validationPod {
	case workflow.Succeeded:
		return stepAdmit
	case workflow.Failed:
		return stepReject
	case workflow.Running, workflow.Stopping:
		return stepWait
	case workflow.Absent:
	}
	if o.pavInUse {
		return stepWait // A pod of an earlier stage has it, which the API server has forgotten.
	}
	return ifRoom(o, stepRunValidation)
}

// createsPod reports whether a step makes use of a pod slot that the volume has not got yet.
func createsPod(next step) bool { return next == stepRunValidation || next == stepRunStaging }

// ifRoom returns a step that creates a pod, where the node has a slot for it.
func ifRoom(o observation, next step) step {
	if o.full {
		return stepWait
	}
	return next
}

func decideStaging(o observation) step {
	switch {
	case o.attached && !o.stagingIntended:
		// Whatever it is, no staging pod of this stage has made it.
		return stepDetach
	case o.claimOnly && o.phase == pavv1.StageStaged:
		return stepDone
	case o.claimOnly:
		return stepConfirm
	case o.phase == pavv1.StageStaged:
		return decideStaged(o)
	case o.attached && !o.stands():
		return stepDetach
	case o.attached && o.settling > 0:
		return stepWait
	case o.attached:
		return stepConfirm
	}
	return decideStagingPod(o)
}

// stands reports whether the staging pod is as it is to be while its volume is attached. One that has ended
// otherwise may have taken the volume away with it, and then what is attached is a directory of the node's disk.
func (o observation) stands() bool {
	return o.stagingPod == workflow.Running || o.stagingPod == workflow.Succeeded
}

// decideStaged returns the next step where the volume was available on the node in this boot.
func decideStaged(o observation) step {
	switch {
	case !o.attached && o.published:
		// What is at /pav/volume now need not be what they have, which they may still write to.
		return stepBlockOnClients
	case !o.attached:
		return stepRevert
	case o.outcomeHeld && o.stagingPod == workflow.Succeeded:
		return stepConfirm
	}
	return stepDone
}

func decideStagingPod(o observation) step {
	switch o.stagingPod {
	case workflow.Succeeded:
		return stepAttach
	case workflow.Running:
		if o.ready {
			return stepAttach
		}
		return stepWait
	case workflow.Failed:
		return stepFail
	case workflow.Stopping:
		return stepWait
	case workflow.Absent:
	}
	if o.given {
		// It may have run, and was removed by force. Its containers may still run, and what it mounted is not the next one's.
		return stepFail
	}
	if !o.stagingIntended && o.pavInUse {
		return stepWait // The validation pod, or one of an earlier stage, has it yet, and /pav is to be empty.
	}
	return ifRoom(o, stepRunStaging)
}

// decideRestaging returns the next step towards a volume that is staged anew under its clients, which have
// a dead one: it is unstaged but for their targets, as often as it takes.
func decideRestaging(o observation) step {
	switch {
	case o.phase == pavv1.StageUnstaging && o.attached:
		return stepDetach
	case o.phase == pavv1.StageUnstaging:
		if next := decideUnstaging(o); next != stepClean {
			return next
		}
		return stepRenew
	case o.covering && !o.attached:
		return stepBlockOnClients
	case o.covering:
		return stepOverMount // There is no way back under those who have it.
	}
	return decideAnother(o)
}

// decideAnother returns the next step towards the volume that takes the dead one's place, and that no client has yet.
func decideAnother(o observation) step {
	switch {
	case o.attached && (!o.stagingIntended || !o.stands()):
		return stepDetach
	case o.attached && o.settling > 0:
		return stepWait
	case o.attached:
		return stepOverMount
	case !o.stagingIntended && o.backoff > 0:
		return stepWait
	}
	return decideStaging(o)
}

// decideRestage returns the next step of Restage, which never makes a stage that is gone anew.
func decideRestage(o observation) step {
	if !o.exists || !o.restaging {
		return stepDone
	}
	return decideStage(o)
}

// decideUnstage returns the next step towards a node without a trace of the volume.
func decideUnstage(o observation) step {
	switch {
	case o.inUse:
		// Kubelet has no mount of its own at the staging path that would tell it, so it may have forgotten them.
		return stepInUse
	case o.exists && o.restaging, !o.settled() && o.phase != pavv1.StageUnstaging && o.phase != pavv1.StageFailed:
		return stepRevert
	case o.clients:
		return stepUnstageClients
	case o.published:
		return stepUnpublish
	case o.leftover:
		return decideLeftover(o)
	case o.terminating:
		return stepDone
	case o.attached:
		return stepDetach
	}
	return decideUnmounted(o)
}

// decideUnmounted returns the next step towards a node without a trace of a volume that no client has any more.
func decideUnmounted(o observation) step {
	switch {
	case o.settled():
		return stepDone
	case o.phase == pavv1.StageUnstaging:
		return decideUnstaging(o)
	}
	return stepForget
}

func decideUnstaging(o observation) step {
	for _, pod := range []workflow.State{o.stagingPod, unlessAdmitted(o)} {
		switch pod {
		case workflow.Running:
			return stepStop
		case workflow.Stopping:
			return stepWait
		case workflow.Absent, workflow.Succeeded, workflow.Failed:
		}
	}
	if o.pavInUse && o.unstagingPod != workflow.Running {
		// "/pav as the staging pod left it": not before kubelet has taken it from that pod.
		return stepWait
	}
	return decideUnstagingPod(o)
}

// unlessAdmitted returns the state of the validation pod as long as it matters.
func unlessAdmitted(o observation) workflow.State {
	if o.validated {
		return workflow.Absent
	}
	return o.validationPod
}

func decideUnstagingPod(o observation) step {
	switch o.unstagingPod {
	case workflow.Succeeded:
		return stepClean
	case workflow.Running:
		if o.stuck {
			// The definition may have been fixed since: the next attempt goes by the present one.
			return stepGiveUp
		}
		return stepWait
	case workflow.Stopping:
		return stepWait
	case workflow.Failed, workflow.Absent:
	}
	switch {
	case !o.unstagingIntended && !o.stagingIntended:
		return stepClean // No pod has run that made anything.
	case o.backoff > 0:
		return stepWait
	case o.unstagingPod == workflow.Failed:
		return stepRetry
	case !o.unstagingWanted:
		return stepClean
	}
	return stepRunUnstaging
}
