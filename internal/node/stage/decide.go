package stage

import (
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// observation has everything that the next step depends on.
type observation struct {
	exists       bool             // there is a PavStage
	terminating  bool             // there is one, but it is being deleted and protects nothing
	leftover     bool             // there is none, but the node has a directory of one
	hasFinalizer bool             // it has PaV's finalizer
	phase        pavv1.StagePhase // its phase
	thisBoot     bool             // its mounts, if any, were made since the node last started
	claimOnly    bool             // it only reserves the volume for the node, and has no staging pod
	restaging    bool             // the volume is being restaged: staged again while clients have it
	mismatch     bool             // it is staged with other parameters than the call has

	validated          bool // the volume is valid, or needs no validation pod
	validationIntended bool // a validation pod was recorded, so it may have run
	validationPod      workflow.State

	stagingIntended bool // a staging pod was recorded, so it may have run
	stagingPod      workflow.State
	outcomeHeld     bool          // the staging pod has its finalizer
	ready           bool          // /pav/ready exists
	attached        bool          // the volume is mounted for clients
	settling        time.Duration // how long to wait for a late mount over the directory that is attached
	covering        bool          // running clients may already have the volume that is attached
	published       bool          // targets are recorded as published
	occupied        bool          // one of them is really mounted; only known if it matters
	inUse           bool          // one of them is mounted for a pod that still runs; only known when unstaging
	pvReplaced      bool          // the PersistentVolume that it was staged for is gone, and another one has the same handle
	clients         bool          // stages of client pods depend on this one
	given           bool          // /pav was mounted for the recorded staging pod; only known if the pod is gone
	pavInUse        bool          // /pav is still mounted for a pod of the stage

	unstagingWanted   bool // the provisioner has an unstaging pod
	unstagingIntended bool // an unstaging pod was recorded, so it may have run
	unstagingPod      workflow.State

	backoff   time.Duration // time until the next attempt
	reportIn  time.Duration // time until the cause that keeps a pod from starting is reported; 0 if there is none
	reportDue bool          // the cause is to be reported now
	full      bool          // the node has no free pod slot for the staging pod; only known if one is to be created
	stuck     bool          // the unstaging pod has not started for long
}

// due returns after what time to observe again although nothing has changed; 0 means never.
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

// step is the next step.
type step int

const (
	stepDone           step = iota // nothing is to be done
	stepYield                      // another controller must act first
	stepOccupied                   // clients must be deleted first
	stepInUse                      // clients that still run must end first
	stepPVReplaced                 // clients of another PersistentVolume must be deleted first
	stepRefuse                     // the volume is staged with other parameters
	stepSweep                      // remove what a deleted PavStage has left
	stepWait                       // until something changes
	stepReport                     // report what keeps a pod from starting
	stepRecord                     // write the PavStage
	stepReplace                    // replace the record of a failed attempt by a new PavStage
	stepRunValidation              // run the validation pod
	stepAdmit                      // record that the volume is valid
	stepReject                     // record that the validation pod failed, and begin to revert
	stepRunStaging                 // run the staging pod
	stepAttach                     // mount the volume for clients
	stepBlockOnClients             // the volume was unmounted while clients have it; they must be deleted first
	stepOverMount                  // mount the new volume over the one that running clients have
	stepConfirm                    // record that the volume is available
	stepFail                       // record that the staging pod failed, and begin to revert
	stepRevert                     // begin to unstage
	stepUnstageClients             // unstage the volume for its client pods
	stepUnpublish                  // unmount the volume from its targets
	stepDetach                     // unmount it
	stepStop                       // stop the validation or staging pod
	stepRunUnstaging               // run the unstaging pod
	stepGiveUp                     // stop an unstaging pod that cannot start
	stepRetry                      // record that the unstaging pod failed, and begin the next attempt
	stepRenew                      // begin the next attempt to restage
	stepClean                      // remove /pav
	stepForget                     // release the pods and delete the PavStage
)

// orReport reports what keeps a pod from starting before it waits for the pod.
func orReport(o observation, next step) step {
	if next == stepWait && o.reportDue {
		return stepReport
	}
	return next
}

// settled reports whether nothing of a stage is left, except perhaps the record of a failure.
func (o observation) settled() bool {
	return !o.exists || o.phase == pavv1.StageFailed && !o.hasFinalizer
}

// decideStage returns the next step of Stage.
func decideStage(o observation) step {
	switch {
	case o.leftover && o.occupied:
		// Only kubelet knows when clients are gone, and unstages then.
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

// decideFound returns the next step of Stage if there is a stage, which may have other parameters.
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
		// No client is left that the volume could be restaged for.
		return stepRevert
	case o.restaging:
		return decideRestaging(o)
	case o.phase == pavv1.StageFailed || o.phase == pavv1.StageUnstaging:
		return decideUnstage(o)
	case !o.thisBoot:
		// The mounts are gone since the node restarted, but other effects of staging may not be.
		return stepRevert
	case !o.validated:
		return decideValidation(o)
	}
	return decideStaging(o)
}

// decideLeftover returns the next step if a PavStage is gone, but its directory is not, and no client has the volume.
func decideLeftover(o observation) step {
	if o.pavInUse {
		return stepWait // Its pod is being deleted.
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
		return stepWait // A pod of an earlier stage still has it, which the API server does not have any more.
	}
	return ifRoom(o, stepRunValidation)
}

// createsPod reports whether a step needs another pod slot of the node.
func createsPod(next step) bool { return next == stepRunValidation || next == stepRunStaging }

// ifRoom returns a step that creates a pod, if the node has a slot for the pod.
func ifRoom(o observation, next step) step {
	if o.full {
		return stepWait
	}
	return next
}

func decideStaging(o observation) step {
	switch {
	case o.attached && !o.stagingIntended:
		// No staging pod of this stage has mounted it.
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

// stands reports whether the staging pod is in a state in which its volume may be attached. Otherwise the pod may
// have unmounted the volume when it ended, and the attached directory is on the node's disk.
func (o observation) stands() bool {
	return o.stagingPod == workflow.Running || o.stagingPod == workflow.Succeeded
}

// decideStaged returns the next step if the volume was available on the node since the node last started.
func decideStaged(o observation) step {
	switch {
	case !o.attached && o.published:
		// The volume at /pav/volume may be another one than clients have, and they may still write to theirs.
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
		// It may have run before it was removed by force. Its containers may still run, and its mounts must not be
		// used for the next pod.
		return stepFail
	}
	if !o.stagingIntended && o.pavInUse {
		return stepWait // The validation pod, or a pod of an earlier stage, still has it, and /pav must be empty.
	}
	return ifRoom(o, stepRunStaging)
}

// decideRestaging returns the next step of a volume that is restaged while its clients have a dead mount. It is
// unstaged, except for their targets, and staged again, as often as necessary.
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
		return stepOverMount // Clients may have the new volume: it cannot be unstaged any more.
	}
	return decideAnother(o)
}

// decideAnother returns the next step towards the new volume, which no client has yet.
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

// decideRestage returns the next step of Restage, which never creates a stage that is gone.
func decideRestage(o observation) step {
	if !o.exists || !o.restaging {
		return stepDone
	}
	return decideStage(o)
}

// decideUnstage returns the next step of Unstage.
func decideUnstage(o observation) step {
	switch {
	case o.inUse:
		// Kubelet has no mount of its own at the staging path, so after a restart it may not know of them.
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

// decideUnmounted returns the next step of Unstage for a volume that no client has any more.
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
		// "/pav as the staging pod left it": not before kubelet has unmounted it from that pod.
		return stepWait
	}
	return decideUnstagingPod(o)
}

// unlessAdmitted returns the state of the validation pod, or Absent once the volume is valid.
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
			// The definition may have been fixed since: the next attempt uses the current one.
			return stepGiveUp
		}
		return stepWait
	case workflow.Stopping:
		return stepWait
	case workflow.Failed, workflow.Absent:
	}
	switch {
	case !o.unstagingIntended && !o.stagingIntended:
		return stepClean // No pod has run that could have left anything.
	case o.backoff > 0:
		return stepWait
	case o.unstagingPod == workflow.Failed:
		return stepRetry
	case !o.unstagingWanted:
		return stepClean
	}
	return stepRunUnstaging
}
