package stage

import (
	"testing"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestDecideStage(t *testing.T) {
	staging := observation{exists: true, held: true, thisBoot: true, phase: pavv1.StageStaging, stagingIntended: true}
	with := func(o observation, change func(*observation)) observation {
		change(&o)
		return o
	}
	tests := map[string]struct {
		o    observation
		want step
	}{
		"without a record, the record comes first":              {o: observation{}, want: stepRecord},
		"what a record that is gone has left is not trusted":    {o: observation{leftover: true, attached: true}, want: stepSweep},
		"a record on its way out is waited for by others":       {o: observation{going: true}, want: stepYield},
		"what is mounted before a staging pod is not trusted":   {o: observation{exists: true, held: true, thisBoot: true, attached: true}, want: stepDetach},
		"what is mounted after a failed attempt is not trusted": {o: observation{exists: true, phase: pavv1.StageFailed, thisBoot: true, stagingIntended: true, attached: true}, want: stepDetach},
		"a new record has its staging pod run":                  {o: observation{exists: true, held: true, thisBoot: true}, want: stepRunStaging},
		"a recorded staging pod that is not there is created":   {o: staging, want: stepRunStaging},
		"a running staging pod is waited for":                   {o: with(staging, func(o *observation) { o.stagingPod = workflow.Running }), want: stepWait},
		"a staging pod that is ready has its volume mounted":    {o: with(staging, func(o *observation) { o.stagingPod, o.ready = workflow.Running, true }), want: stepAttach},
		"a staging pod that completed has its volume mounted":   {o: with(staging, func(o *observation) { o.stagingPod = workflow.Succeeded }), want: stepAttach},
		"a staging pod that is being deleted is waited for":     {o: with(staging, func(o *observation) { o.stagingPod = workflow.Stopping }), want: stepWait},
		"a staging pod that failed has its failure recorded":    {o: with(staging, func(o *observation) { o.stagingPod = workflow.Failed }), want: stepFail},
		"a mounted volume is confirmed":                         {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Succeeded, true }), want: stepConfirm},
		"a staged volume is done":                               {o: with(staging, func(o *observation) { o.phase, o.attached = pavv1.StageStaged, true }), want: stepDone},
		"a staged volume is done while its staging pod runs": {o: with(staging, func(o *observation) {
			o.phase, o.attached, o.stagingPod, o.outcomeHeld = pavv1.StageStaged, true, workflow.Running, true
		}), want: stepDone},
		"a completed staging pod that is still held is released": {o: with(staging, func(o *observation) {
			o.phase, o.attached, o.stagingPod, o.outcomeHeld = pavv1.StageStaged, true, workflow.Succeeded, true
		}), want: stepConfirm},
		"a failed staging pod of a staged volume is released": {o: with(staging, func(o *observation) {
			o.phase, o.attached, o.stagingPod, o.outcomeHeld = pavv1.StageStaged, true, workflow.Failed, true
		}), want: stepConfirm},
		"a staged volume that is not mounted any more is mounted":     {o: with(staging, func(o *observation) { o.phase = pavv1.StageStaged }), want: stepAttach},
		"a stage of an earlier boot is reverted":                      {o: with(staging, func(o *observation) { o.phase, o.thisBoot = pavv1.StageStaged, false }), want: stepRevert},
		"the record of a failure is replaced":                         {o: observation{exists: true, thisBoot: true, phase: pavv1.StageFailed, stagingIntended: true}, want: stepReplace},
		"the record of a failure that still holds is let go":          {o: observation{exists: true, held: true, thisBoot: true, phase: pavv1.StageFailed, stagingIntended: true}, want: stepForget},
		"an unstaging that was begun is ended first":                  {o: with(staging, func(o *observation) { o.phase, o.stagingPod = pavv1.StageUnstaging, workflow.Running }), want: stepStop},
		"an unstaging that was begun unmounts first of all":           {o: with(staging, func(o *observation) { o.phase, o.attached = pavv1.StageUnstaging, true }), want: stepDetach},
		"a failure before any pod has run ends without unstaging pod": {o: observation{exists: true, held: true, thisBoot: true, phase: pavv1.StageUnstaging, unstagingWanted: true}, want: stepClean},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := decideStage(test.o); got != test.want {
				t.Errorf("got step %d, want %d", got, test.want)
			}
		})
	}
}

func TestDecideUnstage(t *testing.T) {
	base := observation{exists: true, held: true, thisBoot: true, phase: pavv1.StageUnstaging, stagingIntended: true, unstagingWanted: true}
	with := func(change func(*observation)) observation {
		o := base
		change(&o)
		return o
	}
	tests := map[string]struct {
		o    observation
		want step
	}{
		"nothing is left to do without a record":                       {o: observation{}, want: stepDone},
		"a mount without a record is taken away":                       {o: observation{leftover: true, attached: true}, want: stepSweep},
		"a record on its way out is nothing to unstage":                {o: observation{going: true}, want: stepDone},
		"a staged volume begins to be unstaged before it is unmounted": {o: with(func(o *observation) { o.phase, o.attached = pavv1.StageStaged, true }), want: stepRevert},
		"a volume that is still being staged is unstaged":              {o: with(func(o *observation) { o.phase, o.stagingPod = pavv1.StageStaging, workflow.Running }), want: stepRevert},
		"a record with nothing done is unstaged":                       {o: observation{exists: true, held: true, thisBoot: true}, want: stepRevert},
		"the volume is detached before the pod is stopped":             {o: with(func(o *observation) { o.attached, o.stagingPod = true, workflow.Running }), want: stepDetach},
		"a running staging pod is stopped":                             {o: with(func(o *observation) { o.stagingPod = workflow.Running }), want: stepStop},
		"a stopping staging pod is waited for":                         {o: with(func(o *observation) { o.stagingPod = workflow.Stopping }), want: stepWait},
		"the unstaging pod waits until the staging pod's /pav is free": {o: with(func(o *observation) { o.stagingPod, o.pavInUse = workflow.Succeeded, true }), want: stepWait},
		"then the unstaging pod runs":                                  {o: with(func(o *observation) { o.stagingPod = workflow.Succeeded }), want: stepRunUnstaging},
		"also where the staging pod is gone":                           {o: with(func(*observation) {}), want: stepRunUnstaging},
		"without an unstaging pod, /pav is removed":                    {o: with(func(o *observation) { o.unstagingWanted = false }), want: stepClean},
		"a recorded unstaging pod that is not there is created":        {o: with(func(o *observation) { o.unstagingIntended = true }), want: stepRunUnstaging},
		"but not before its time":                                      {o: with(func(o *observation) { o.unstagingIntended, o.backoff = true, time.Second }), want: stepWait},
		"nor is one whose template failed":                             {o: with(func(o *observation) { o.backoff = time.Second }), want: stepWait},
		"a running unstaging pod is waited for":                        {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod, o.pavInUse = true, workflow.Running, true }), want: stepWait},
		"a failed unstaging pod is retried":                            {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod = true, workflow.Failed }), want: stepRetry},
		"a failed unstaging pod is kept until the next attempt": {o: with(func(o *observation) {
			o.unstagingIntended, o.unstagingPod, o.backoff = true, workflow.Failed, time.Second
		}), want: stepWait},
		"/pav stays until it has been taken from the unstaging pod": {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod, o.pavInUse = true, workflow.Succeeded, true }), want: stepWait},
		"/pav is removed when the unstaging pod has succeeded":      {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod = true, workflow.Succeeded }), want: stepClean},
		"the record of a failure is nothing to unstage":             {o: observation{exists: true, phase: pavv1.StageFailed, stagingIntended: true}, want: stepDone},
		"a failure that still holds is let go":                      {o: with(func(o *observation) { o.phase = pavv1.StageFailed }), want: stepForget},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := decideUnstage(test.o); got != test.want {
				t.Errorf("got step %d, want %d", got, test.want)
			}
		})
	}
}
