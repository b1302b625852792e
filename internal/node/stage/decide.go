package stage

import (
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// observation is what is, as far as the next step depends on it.
type observation struct {
	exists   bool             // there is a PavStage
	going    bool             // there is one, but it is on its way out and holds nothing
	leftover bool             // there is none, but the node has a folder of one
	held     bool             // it has its finalizer
	phase    pavv1.StagePhase // how far it is
	thisBoot bool             // its mounts, if any, were made since the node's last boot

	stagingIntended   bool // a staging pod was recorded, so it may have run
	stagingPod        workflow.State
	outcomeHeld       bool // the staging pod has its finalizer
	ready             bool // /pav/ready exists
	attached          bool // the volume is mounted for clients
	pavInUse          bool // /pav is still mounted for a pod of the stage
	unstagingWanted   bool // the provisioner has an unstaging pod
	unstagingIntended bool // an unstaging pod was recorded, so it may have run
	unstagingPod      workflow.State
	backoff           time.Duration // until the next unstaging attempt
}

// step is what to do next.
type step int

const (
	stepDone         step = iota // nothing is left to do
	stepYield                    // somebody else has to act first
	stepSweep                    // remove what a PavStage that is gone has left
	stepWait                     // until something changes
	stepRecord                   // write the PavStage
	stepReplace                  // replace the record of a failed attempt by a new PavStage
	stepRunStaging               // run the staging pod
	stepAttach                   // mount the volume for clients
	stepConfirm                  // record that the volume is available
	stepFail                     // record that the staging pod failed, and begin to revert
	stepRevert                   // begin to unstage
	stepDetach                   // unmount it
	stepStop                     // stop the staging pod
	stepRunUnstaging             // run the unstaging pod
	stepRetry                    // record that the unstaging pod failed, and begin the next attempt
	stepClean                    // remove /pav
	stepForget                   // let the pods and the PavStage go
)

// decideStage returns the next step towards a volume that is available on the node.
func decideStage(o observation) step {
	settled := o.phase == pavv1.StageFailed && !o.held
	switch {
	case o.leftover:
		return stepSweep
	case o.going:
		return stepYield
	case !o.exists:
		return stepRecord
	case o.attached && settled:
		return stepDetach
	case settled:
		return stepReplace
	case o.phase == pavv1.StageFailed || o.phase == pavv1.StageUnstaging:
		return decideUnstage(o)
	case !o.thisBoot:
		// The mounts are gone with the boot that they were made in, but not what else staging did.
		return stepRevert
	}
	return decideStaging(o)
}

func decideStaging(o observation) step {
	over := o.stagingPod == workflow.Succeeded || o.stagingPod == workflow.Failed
	switch {
	case o.attached && !o.stagingIntended:
		// Whatever it is, no staging pod of this stage has made it.
		return stepDetach
	case o.attached && (o.phase != pavv1.StageStaged || o.outcomeHeld && over):
		return stepConfirm
	case o.attached:
		return stepDone
	case o.phase == pavv1.StageStaged:
		return stepAttach
	}
	return decideStagingPod(o)
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
		return stepRunStaging
	}
	return stepWait
}

// decideUnstage returns the next step towards a node without a trace of the volume.
func decideUnstage(o observation) step {
	begun := o.phase == pavv1.StageUnstaging
	settled := !o.exists || o.phase == pavv1.StageFailed && !o.held
	switch {
	case o.leftover:
		return stepSweep
	case o.going:
		return stepDone
	case !settled && !begun && o.phase != pavv1.StageFailed:
		return stepRevert
	case o.attached:
		return stepDetach
	case settled:
		return stepDone
	case !begun:
		return stepForget
	}
	return decideUnstaging(o)
}

func decideUnstaging(o observation) step {
	switch {
	case o.stagingPod == workflow.Running:
		return stepStop
	case o.stagingPod == workflow.Stopping:
		return stepWait
	case o.pavInUse && o.unstagingPod != workflow.Running:
		// "/pav as the staging pod left it": not before kubelet has taken it from that pod.
		return stepWait
	}
	return decideUnstagingPod(o)
}

func decideUnstagingPod(o observation) step {
	switch o.unstagingPod {
	case workflow.Succeeded:
		return stepClean
	case workflow.Running, workflow.Stopping:
		return stepWait
	case workflow.Failed, workflow.Absent:
	}
	switch {
	case !o.unstagingIntended && !o.stagingIntended:
		return stepClean // No pod has run.
	case o.backoff > 0:
		return stepWait
	case o.unstagingPod == workflow.Failed:
		return stepRetry
	case !o.unstagingWanted:
		return stepClean
	}
	return stepRunUnstaging
}
