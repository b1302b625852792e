package stage

import (
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// unstageTable is for Unstage.
var unstageTable = table{
	// Kubelet has no mount of its own at the staging path, so after a restart it may not know of them.
	{"pods that run have the volume", func(o observation) bool { return o.inUse }, to(stepInUse)},
	{"the volume is unstaged while it is restaged", func(o observation) bool { return o.exists && o.restaging }, to(stepRevert)},
	{"the unstaging is not recorded", func(o observation) bool {
		return !o.settled() && o.phase != pavv1.StageUnstaging && o.phase != pavv1.StageFailed
	}, to(stepRevert)},
	{"client pods have stages of their own", func(o observation) bool { return o.clients }, to(stepUnstageClients)},
	{"targets have the volume", func(o observation) bool { return o.published }, to(stepUnpublish)},
	{"a deleted PavStage left a directory to unstage", func(o observation) bool { return o.leftover }, leftoverTable.decide},
	{"the PavStage to unstage is being deleted", func(o observation) bool { return o.terminating }, to(stepDone)},
	{"the volume to unstage is attached", func(o observation) bool { return o.attached }, to(stepDetach)},
	{"nothing is left to unstage", observation.settled, to(stepDone)},
	{"no client has the volume any more", func(o observation) bool { return o.phase == pavv1.StageUnstaging }, unstagingTable.decide},
	{"the failed attempt is reverted", always, to(stepForget)},
}

// unstagingTable is for a volume that no client has, and whose unstaging is recorded.
var unstagingTable = table{
	// It needs what the staging pod serves, and is not stopped in the middle, unless what it works on is dead.
	{"the node expansion pod is not needed any more", func(o observation) bool {
		return o.expansionPod == workflow.Running && (!o.expansionStarted || o.restaging || !o.thisBoot || o.stopRequested)
	}, to(stepStopExpansion)},
	{"the node expansion pod runs", expansionPod(workflow.Running, workflow.Stopping), to(stepWait)},
	{"the node expansion pod has ended", func(o observation) bool { return o.expansionIntended }, to(stepEndExpansion)},

	{"the staging pod still runs", stagingPod(workflow.Running), to(stepStop)},
	{"the staging pod is still being deleted", stagingPod(workflow.Stopping), to(stepWait)},
	// Once the volume is valid, the state of its validation pod does not matter.
	{"the validation pod still runs", func(o observation) bool { return !o.validated && o.validationPod == workflow.Running }, to(stepStop)},
	{"the validation pod is still being deleted", func(o observation) bool { return !o.validated && o.validationPod == workflow.Stopping }, to(stepWait)},
	// "/pav as the staging pod left it": not before kubelet has unmounted it from that pod.
	{"a pod that ended still has /pav", func(o observation) bool { return o.pavInUse && o.unstagingPod != workflow.Running }, to(stepWait)},

	{"the unstaging pod succeeded", unstagingPod(workflow.Succeeded), to(stepClean)},
	// The definition may have been fixed since: the next attempt uses the current one.
	{"the unstaging pod cannot start", func(o observation) bool { return o.unstagingPod == workflow.Running && o.stuck }, to(stepGiveUp)},
	{"a retry stops the unstaging pod", func(o observation) bool { return o.unstagingPod == workflow.Running && o.stopRequested }, to(stepGiveUp)},
	{"the unstaging pod runs", unstagingPod(workflow.Running), to(stepWait)},
	{"the unstaging pod is being deleted", unstagingPod(workflow.Stopping), to(stepWait)},
	{"no pod has run that could have left anything", func(o observation) bool { return !o.unstagingIntended && !o.stagingIntended }, to(stepClean)},
	{"the next attempt to unstage is not due", func(o observation) bool { return o.backoff > 0 }, to(stepWait)},
	{"the unstaging pod failed", unstagingPod(workflow.Failed), to(stepRetry)},
	{"the provisioner has no unstaging pod", func(o observation) bool { return !o.unstagingWanted }, to(stepClean)},
	{"there is no unstaging pod", always, to(stepRunUnstaging)},
}

// unstagingPod is true of an observation with the unstaging pod in a state.
func unstagingPod(state workflow.State) func(observation) bool {
	return func(o observation) bool { return o.unstagingPod == state }
}
