package stage

import (
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// expandable is an observation of a volume that is staged and available, after some changes.
func expandable(changes ...func(*observation)) observation {
	o := observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, phase: pavv1.StageStaged, stagingIntended: true, attached: true}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func expansionIs(state workflow.State) func(*observation) {
	return func(o *observation) {
		o.expansionIntended, o.expansionPod, o.expansionStarted = true, state, state != workflow.Absent
	}
}

func TestDecideExpansion(t *testing.T) {
	tests := map[string]struct {
		o    observation
		want step
	}{
		"no PavStage":                                         {observation{}, stepNotHere},
		"only the record of a failure":                        {observation{exists: true, phase: pavv1.StageFailed}, stepNotHere},
		"the PavStage is being deleted":                       {observation{terminating: true}, stepNotHere},
		"the volume is being staged":                          {expandable(func(o *observation) { o.phase = pavv1.StageStaging }), stepNotNow},
		"the volume is being unstaged":                        {expandable(func(o *observation) { o.phase = pavv1.StageUnstaging }), stepNotNow},
		"the volume is being restaged":                        {expandable(func(o *observation) { o.restaging = true }), stepNotNow},
		"the node restarted":                                  {expandable(func(o *observation) { o.thisBoot = false }), stepNotNow},
		"the volume was unmounted by hand":                    {expandable(func(o *observation) { o.attached = false }), stepNotNow},
		"there is no pod":                                     {expandable(), stepRunExpansion},
		"the recorded pod does not exist":                     {expandable(expansionIs(workflow.Absent)), stepRunExpansion},
		"the same, and something of it may run":               {expandable(expansionIs(workflow.Absent), func(o *observation) { o.otherHasPav = true }), stepWait},
		"the node has no slot for the pod":                    {expandable(func(o *observation) { o.full = true }), stepWait},
		"the pod runs":                                        {expandable(expansionIs(workflow.Running)), stepWait},
		"the pod runs for a capacity that is reached":         {expandable(expansionIs(workflow.Running), func(o *observation) { o.expanded = true }), stepWait},
		"the pod is being deleted":                            {expandable(expansionIs(workflow.Stopping)), stepWait},
		"the pod succeeded":                                   {expandable(expansionIs(workflow.Succeeded)), stepRecordExpansion},
		"the pod failed":                                      {expandable(expansionIs(workflow.Failed)), stepFailExpansion},
		"the volume has the capacity":                         {expandable(func(o *observation) { o.expanded = true }), stepDone},
		"the volume has the capacity, and a pod is on record": {expandable(expansionIs(workflow.Absent), func(o *observation) { o.expanded = true }), stepRunExpansion},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := expansionTable.decide(test.o); got.step != test.want {
				t.Errorf("got step %s by %q, want %s", got.step, got.rule, test.want)
			}
		})
	}
}

// A pod that expands a volume is seen to its end before anything is taken away from it.
func TestDecideUnstage_WhileTheVolumeIsExpanded(t *testing.T) {
	unstaging := func(changes ...func(*observation)) observation {
		return expandable(append(changes, func(o *observation) { o.phase, o.attached = pavv1.StageUnstaging, false })...)
	}
	tests := map[string]struct {
		o    observation
		want step
	}{
		"the pod runs":                                    {unstaging(expansionIs(workflow.Running)), stepWait},
		"the pod runs beside the staging pod":             {unstaging(expansionIs(workflow.Running), func(o *observation) { o.stagingPod = workflow.Running }), stepWait},
		"the node restarted while the pod ran":            {unstaging(expansionIs(workflow.Running), func(o *observation) { o.thisBoot = false }), stepStopExpansion},
		"the pod has not started":                         {unstaging(expansionIs(workflow.Running), func(o *observation) { o.expansionStarted = false }), stepStopExpansion},
		"the pod runs for long, and a retry is requested": {unstaging(expansionIs(workflow.Running), func(o *observation) { o.stopRequested = true }), stepStopExpansion},
		"the pod is being deleted":                        {unstaging(expansionIs(workflow.Stopping)), stepWait},
		"the pod succeeded":                               {unstaging(expansionIs(workflow.Succeeded)), stepEndExpansion},
		"the pod failed, and the staging pod runs":        {unstaging(expansionIs(workflow.Failed), func(o *observation) { o.stagingPod = workflow.Running }), stepEndExpansion},
		"the pod is gone":                                 {unstaging(expansionIs(workflow.Absent)), stepEndExpansion},
		"its end is recorded":                             {unstaging(func(o *observation) { o.stagingPod = workflow.Running }), stepStop},
		"it is gone, and something still has /pav: wait":  {unstaging(func(o *observation) { o.pavInUse = true }), stepWait},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := unstageTable.decide(test.o); got.step != test.want {
				t.Errorf("got step %s by %q, want %s", got.step, got.rule, test.want)
			}
		})
	}
	restaging := unstaging(expansionIs(workflow.Running), func(o *observation) { o.restaging = true })
	if got := restageTable.decide(restaging); got.step != stepStopExpansion {
		t.Errorf("the volume is dead: got step %s by %q", got.step, got.rule)
	}
}
