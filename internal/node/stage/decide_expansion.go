package stage

import (
	"slices"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// expansionTable is for Expand. The volume stays as it is for its clients.
var expansionTable = table{
	{"the volume to expand is not staged", func(o observation) bool { return o.settled() }, to(stepNotHere)},
	{"the volume to expand is not available", func(o observation) bool { return !o.available() }, to(stepNotNow)},
	{"the node expansion pod succeeded", expansionPod(workflow.Succeeded), to(stepRecordExpansion)},
	{"the node expansion pod failed", expansionPod(workflow.Failed), to(stepFailExpansion)},
	// Also one for another capacity is seen to its end.
	{"the node expansion pod has not ended", expansionPod(workflow.Running, workflow.Stopping), to(stepWait)},
	{"the volume has the capacity on the node", func(o observation) bool { return !o.expansionIntended && o.expanded }, to(stepDone)},
	// No two of them work on a volume at a time.
	{"a pod that the API server does not have any more still has /pav", func(o observation) bool { return o.otherHasPav }, to(stepWait)},
	{"there is no node expansion pod", always, ifRoom(stepRunExpansion)},
}

// available reports whether clients can use the volume.
func (o observation) available() bool {
	return o.phase == pavv1.StageStaged && !o.terminating && !o.restaging && o.thisBoot && o.attached
}

// expansionPod is true of an observation with the node expansion pod in one of the states.
func expansionPod(states ...workflow.State) func(observation) bool {
	return func(o observation) bool { return o.expansionIntended && slices.Contains(states, o.expansionPod) }
}
