package integration

import (
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A backup of objects has the PavStage of a node that has the volume no more. It has no status, and nothing on the node
// is as it says. It does not keep clients from the volume, and goes with the last one; if no client comes,
// the controller agent removes it, which TestStagesWithoutUsersAreReleased shows.
func TestNode_StageRestoredFromABackup(t *testing.T) {
	n := newNode(t, workers(t, newDevices(t)), scopeNode)
	n.run(t)
	v := n.volume(t, "made")
	n.stage(t, v)
	stages := n.stages(t)
	if len(stages) != 1 {
		t.Fatalf("there are %d stages, want 1", len(stages))
	}
	restored := asBackedUp(&stages[0])
	n.unstage(t, v)
	n.checkLeft(t)

	mustCreate(t, n.c, restored)
	n.liveOnce(t, v)
	n.checkLeft(t)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging, pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}
