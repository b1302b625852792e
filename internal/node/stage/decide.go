package stage

import (
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// step is the next step.
type step string

const (
	stepDone           step = "Done"           // nothing is to be done
	stepYield          step = "Yield"          // another controller must act first
	stepOccupied       step = "Occupied"       // clients must be deleted first
	stepInUse          step = "InUse"          // clients that still run must end first
	stepPVReplaced     step = "PVReplaced"     // clients of another PersistentVolume must be deleted first
	stepRefuse         step = "Refuse"         // the volume is staged with other parameters
	stepSweep          step = "Sweep"          // remove what a deleted PavStage has left
	stepWait           step = "Wait"           // until something changes
	stepReport         step = "Report"         // report what keeps a pod from starting, or that it runs for long
	stepLeave          step = "Leave"          // no pod needs the volume any more; kubelet unstages it
	stepRecord         step = "Record"         // write the PavStage
	stepBegin          step = "Begin"          // write the first status of the PavStage
	stepReplace        step = "Replace"        // replace the record of a failed attempt by a new PavStage
	stepRunValidation  step = "RunValidation"  // run the validation pod
	stepAdmit          step = "Admit"          // record that the volume is valid
	stepReject         step = "Reject"         // record that the validation pod failed, and begin to revert
	stepRunStaging     step = "RunStaging"     // run the staging pod
	stepAttach         step = "Attach"         // mount the volume for clients
	stepBlockOnClients step = "BlockOnClients" // the volume was unmounted while clients have it; they must be deleted first
	stepOverMount      step = "OverMount"      // mount the new volume over the one that running clients have
	stepConfirm        step = "Confirm"        // record that the volume is available
	stepFailStopped    step = "FailStopped"    // record that a retry stops the pod, and begin to revert
	stepFail           step = "Fail"           // record that the staging pod failed, and begin to revert
	stepRevert         step = "Revert"         // begin to unstage
	stepUnstageClients step = "UnstageClients" // unstage the volume for its client pods
	stepUnpublish      step = "Unpublish"      // unmount the volume from its targets
	stepDetach         step = "Detach"         // unmount it
	stepStop           step = "Stop"           // stop the validation or staging pod
	stepRunUnstaging   step = "RunUnstaging"   // run the unstaging pod

	stepGiveWay         step = "GiveWay"         // remove the PavStage again, as no node is to have the volume now
	stepNotHere         step = "NotHere"         // the volume is not staged on the node
	stepNotNow          step = "NotNow"          // the volume is not staged at the moment
	stepRunExpansion    step = "RunExpansion"    // run the node expansion pod
	stepRecordExpansion step = "RecordExpansion" // record that the node expansion pod succeeded
	stepFailExpansion   step = "FailExpansion"   // record that the node expansion pod failed
	stepStopExpansion   step = "StopExpansion"   // stop the node expansion pod
	stepEndExpansion    step = "EndExpansion"    // record the end of a node expansion pod that no call waits for

	stepGiveUp step = "GiveUp" // stop an unstaging pod that cannot start, or runs for long
	stepRetry  step = "Retry"  // record that the unstaging pod failed, and begin the next attempt
	stepRenew  step = "Renew"  // begin the next attempt to restage
	stepClean  step = "Clean"  // remove /pav
	stepForget step = "Forget" // release the pods and delete the PavStage
)

// createsPod reports whether a step needs another pod slot of the node.
func createsPod(next step) bool {
	return next == stepRunValidation || next == stepRunStaging || next == stepRunExpansion
}

// orReport reports what keeps a pod from starting before it waits for the pod.
func orReport(o observation, next step) step {
	if next == stepWait && o.reportDue {
		return stepReport
	}
	return next
}

// stageTable is for Stage.
var stageTable = table{
	// Only kubelet knows when clients are gone, and unstages then.
	{"clients have what a deleted PavStage left", func(o observation) bool { return o.leftover && o.occupied }, to(stepOccupied)},
	{"a deleted PavStage left a directory", func(o observation) bool { return o.leftover }, leftoverTable.decide},
	{"the PavStage is being deleted", func(o observation) bool { return o.terminating }, to(stepYield)},
	{"there is no PavStage", func(o observation) bool { return !o.exists }, to(stepRecord)},
	{"a failed attempt left a mount", func(o observation) bool { return o.settled() && o.attached }, to(stepDetach)},
	{"the last attempt failed", observation.settled, to(stepReplace)},
	{"the PavStage has no status", func(o observation) bool { return o.exists && o.unbegun }, to(stepBegin)},

	{"clients have the volume of a PersistentVolume that is gone", func(o observation) bool { return o.pvReplaced && o.occupied }, to(stepPVReplaced)},
	{"the PersistentVolume was replaced", func(o observation) bool { return o.pvReplaced }, to(stepRevert)},
	{"the volume is staged with other parameters", func(o observation) bool { return o.mismatch }, to(stepRefuse)},

	// No client is left that the volume could be restaged for.
	{"the node restarted while the volume was restaged", func(o observation) bool { return o.restaging && !o.thisBoot }, to(stepRevert)},
	{"the volume is being restaged", func(o observation) bool { return o.restaging }, restagingTable.decide},
	{"an attempt that failed is not reverted yet", func(o observation) bool { return o.phase == pavv1.StageFailed }, unstageTable.decide},
	{"the volume is being unstaged", func(o observation) bool { return o.phase == pavv1.StageUnstaging }, unstageTable.decide},
	// The mounts are gone since the node restarted, but other effects of staging may not be.
	{"the node restarted since the volume was staged", func(o observation) bool { return !o.thisBoot }, to(stepRevert)},
	{"the volume is withheld from nodes", func(o observation) bool { return o.withheld }, to(stepGiveWay)},
	{"the volume is not validated yet", func(o observation) bool { return !o.validated }, validationTable.decide},
	{"the volume is valid", always, stagingTable.decide},
}

// restageTable is for Restage, which never creates a PavStage that is gone.
var restageTable = table{
	{"there is nothing to restage", func(o observation) bool { return !o.exists || !o.restaging }, to(stepDone)},
	{"there is a volume to restage", always, stageTable.decide},
}

// leftoverTable is for a directory whose PavStage is gone, and that no client has.
var leftoverTable = table{
	{"a pod of the deleted PavStage still has /pav", func(o observation) bool { return o.pavInUse }, to(stepWait)}, // it is being deleted
	{"no pod has the directory that is left", always, to(stepSweep)},
}

var validationTable = table{
	{"the validation pod succeeded", validation(workflow.Succeeded), to(stepAdmit)},
	{"the validation pod failed", validation(workflow.Failed), to(stepReject)},
	{"a retry stops the validation pod", func(o observation) bool { return o.validationPod == workflow.Running && o.stopRequested }, to(stepFailStopped)},
	{"no pod needs the volume that is being validated", func(o observation) bool { return o.validationPod == workflow.Running && o.unneeded }, to(stepLeave)},
	{"the validation pod runs", validation(workflow.Running), to(stepWait)},
	{"the validation pod is being deleted", validation(workflow.Stopping), to(stepWait)},
	// The API server does not have that pod any more.
	{"a pod of an earlier attempt still has /pav", func(o observation) bool { return o.pavInUse }, to(stepWait)},
	{"there is no validation pod", always, ifRoom(stepRunValidation)},
}

// stagingTable is for a valid volume.
var stagingTable = table{
	{"no staging pod can have made the mount", func(o observation) bool { return o.attached && !o.stagingIntended }, to(stepDetach)},
	{"the volume is reserved for the node", func(o observation) bool { return o.claimOnly && o.phase == pavv1.StageStaged }, to(stepDone)},
	{"the volume is to be reserved for the node", func(o observation) bool { return o.claimOnly }, to(stepConfirm)},
	{"the volume is staged", func(o observation) bool { return o.phase == pavv1.StageStaged }, stagedTable.decide},
	{"the staging pod ended since the volume was attached", func(o observation) bool { return o.attached && !o.stands() }, to(stepDetach)},
	{"a late mount may cover the attached volume", func(o observation) bool { return o.attached && o.settling > 0 }, to(stepWait)},
	{"the volume is attached", func(o observation) bool { return o.attached }, to(stepConfirm)},

	{"the staging pod succeeded", stagingPod(workflow.Succeeded), to(stepAttach)},
	{"the staging pod created /pav/ready", func(o observation) bool { return o.stagingPod == workflow.Running && o.ready }, to(stepAttach)},
	{"a retry stops the staging pod", func(o observation) bool { return o.stagingPod == workflow.Running && o.stopRequested }, to(stepFailStopped)},
	{"no pod needs the volume that is being staged", func(o observation) bool { return o.stagingPod == workflow.Running && o.unneeded }, to(stepLeave)},
	{"the staging pod has not created /pav/ready", stagingPod(workflow.Running), to(stepWait)},
	{"the staging pod failed", stagingPod(workflow.Failed), to(stepFail)},
	{"the staging pod is being deleted", stagingPod(workflow.Stopping), to(stepWait)},
	// It may have run. Its containers may still run, and its mounts must not be used for the next pod.
	{"the staging pod was removed by force", func(o observation) bool { return o.given }, to(stepFail)},
	// The pod is the validation pod, or one of an earlier attempt, and /pav must be empty.
	{"another pod still has /pav", func(o observation) bool { return !o.stagingIntended && o.pavInUse }, to(stepWait)},
	{"there is no staging pod", always, ifRoom(stepRunStaging)},
}

// stagedTable is for a volume that has been available on the node since the node last started.
var stagedTable = table{
	// The volume at /pav/volume may be another one than clients have, and they may still write to theirs.
	{"the volume was unmounted while clients have it", func(o observation) bool { return !o.attached && o.published }, to(stepBlockOnClients)},
	{"the staged volume was unmounted", func(o observation) bool { return !o.attached }, to(stepRevert)},
	{"the staging pod completed after the volume was staged", func(o observation) bool { return o.outcomeHeld && o.stagingPod == workflow.Succeeded }, to(stepConfirm)},
	{"the volume is staged and attached", always, to(stepDone)},
}

// restagingTable is for a volume that is restaged while its clients have a dead mount. It is unstaged, except for their
// targets, and staged again, as often as necessary.
var restagingTable = table{
	{"the dead volume is attached", func(o observation) bool { return o.phase == pavv1.StageUnstaging && o.attached }, to(stepDetach)},
	{"the dead volume is being unstaged", func(o observation) bool { return o.phase == pavv1.StageUnstaging }, func(o observation) decision {
		if d := unstagingTable.decide(o); d.step != stepClean {
			return d
		}
		return decision{step: stepRenew, rule: "the dead volume is unstaged"}
	}},
	{"the new volume was unmounted while clients may have it", func(o observation) bool { return o.covering && !o.attached }, to(stepBlockOnClients)},
	// It cannot be unstaged any more.
	{"clients may have the new volume", func(o observation) bool { return o.covering }, to(stepOverMount)},

	// No client has the new volume yet.
	{"no staging pod can have made the new mount", func(o observation) bool { return o.attached && !o.stagingIntended }, to(stepDetach)},
	{"the staging pod ended since the new volume was attached", func(o observation) bool { return o.attached && !o.stands() }, to(stepDetach)},
	{"a late mount may cover the new volume", func(o observation) bool { return o.attached && o.settling > 0 }, to(stepWait)},
	{"the new volume is attached", func(o observation) bool { return o.attached }, to(stepOverMount)},
	{"the next attempt to restage is not due", func(o observation) bool { return !o.stagingIntended && o.backoff > 0 }, to(stepWait)},
	{"the new volume is not attached", always, stagingTable.decide},
}

// validation is true of an observation with the validation pod in a state.
func validation(state workflow.State) func(observation) bool {
	return func(o observation) bool { return o.validationPod == state }
}

// stagingPod is true of an observation with the staging pod in a state.
func stagingPod(state workflow.State) func(observation) bool {
	return func(o observation) bool { return o.stagingPod == state }
}
