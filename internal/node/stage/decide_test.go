package stage

import (
	"testing"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestDecideStage(t *testing.T) {
	staging := observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, phase: pavv1.StageStaging, stagingIntended: true}
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
		"a record on its way out is waited for by others":       {o: observation{terminating: true}, want: stepYield},
		"what is mounted before a staging pod is not trusted":   {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, attached: true}, want: stepDetach},
		"what is mounted after a failed attempt is not trusted": {o: observation{exists: true, phase: pavv1.StageFailed, thisBoot: true, stagingIntended: true, attached: true}, want: stepDetach},
		"a new record has its staging pod run":                  {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true}, want: stepRunStaging},
		"what is left is not swept under a client":              {o: observation{leftover: true, published: true, occupied: true}, want: stepOccupied},
		"nor under a pod of the stage that was":                 {o: observation{leftover: true, pavInUse: true}, want: stepWait},
		"a stage of another kind is left alone":                 {o: with(staging, func(o *observation) { o.mismatch = true }), want: stepRefuse},
		"the first staging pod waits until /pav is free":        {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, pavInUse: true}, want: stepWait},
		"a recorded staging pod that is not there is created":   {o: staging, want: stepRunStaging},
		"no staging pod is created on a full node":              {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, full: true}, want: stepWait},
		"nor a validation pod":                                  {o: observation{exists: true, hasFinalizer: true, thisBoot: true, full: true}, want: stepWait},
		"nor one that was recorded, and is not there":           {o: with(staging, func(o *observation) { o.full = true }), want: stepWait},
		"nor one that stages the volume again":                  {o: with(staging, func(o *observation) { o.restaging, o.stagingIntended, o.full = true, false, true }), want: stepWait},
		"a pod that the full node has is no matter":             {o: with(staging, func(o *observation) { o.stagingPod, o.ready, o.full = workflow.Running, true, true }), want: stepAttach},
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
		"a failed staging pod of a staged volume is the monitor's": {o: with(staging, func(o *observation) {
			o.phase, o.attached, o.stagingPod, o.outcomeHeld = pavv1.StageStaged, true, workflow.Failed, true
		}), want: stepDone},
		"a mounted volume of a pod that runs is confirmed": {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Running, true }), want: stepConfirm},
		"but not where a mount may come late": {o: with(staging, func(o *observation) {
			o.stagingPod, o.attached, o.settling = workflow.Running, true, time.Second
		}), want: stepWait},
		"a mounted volume of a pod that has failed may be a directory of the node's disk": {o: with(staging, func(o *observation) {
			o.stagingPod, o.attached = workflow.Failed, true
		}), want: stepDetach},
		"so may that of one that is being stopped":                     {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Stopping, true }), want: stepDetach},
		"a pod that was given /pav, and is gone, was forced away":      {o: with(staging, func(o *observation) { o.given = true }), want: stepFail},
		"and that of one that was forced away":                         {o: with(staging, func(o *observation) { o.attached = true }), want: stepDetach},
		"a staged volume whose pod has completed and gone is done":     {o: with(staging, func(o *observation) { o.phase, o.attached = pavv1.StageStaged, true }), want: stepDone},
		"a staged volume that is not mounted any more is staged again": {o: with(staging, func(o *observation) { o.phase, o.stagingPod = pavv1.StageStaged, workflow.Running }), want: stepRevert},
		"but not while clients have it": {o: with(staging, func(o *observation) {
			o.phase, o.published, o.stagingPod = pavv1.StageStaged, true, workflow.Running
		}), want: stepBlockOnClients},
		"a stage of an earlier boot is reverted":                      {o: with(staging, func(o *observation) { o.phase, o.thisBoot = pavv1.StageStaged, false }), want: stepRevert},
		"the record of a failure is replaced":                         {o: observation{exists: true, thisBoot: true, phase: pavv1.StageFailed, stagingIntended: true}, want: stepReplace},
		"the record of a failure that still holds is let go":          {o: observation{exists: true, hasFinalizer: true, thisBoot: true, phase: pavv1.StageFailed, stagingIntended: true}, want: stepForget},
		"an unstaging that was begun is ended first":                  {o: with(staging, func(o *observation) { o.phase, o.stagingPod = pavv1.StageUnstaging, workflow.Running }), want: stepStop},
		"an unstaging that was begun unmounts first of all":           {o: with(staging, func(o *observation) { o.phase, o.attached = pavv1.StageUnstaging, true }), want: stepDetach},
		"a failure before any pod has run ends without unstaging pod": {o: observation{exists: true, hasFinalizer: true, thisBoot: true, phase: pavv1.StageUnstaging, unstagingWanted: true}, want: stepClean},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stageTable.decide(test.o).step; got != test.want {
				t.Errorf("got step %s, want %s", got, test.want)
			}
		})
	}
}

func TestDecideStage_Validation(t *testing.T) {
	validating := observation{exists: true, hasFinalizer: true, thisBoot: true, phase: pavv1.StageValidating, validationIntended: true}
	with := func(change func(*observation)) observation {
		o := validating
		change(&o)
		return o
	}
	tests := map[string]struct {
		o    observation
		want step
	}{
		"a new record is validated first":                        {o: observation{exists: true, hasFinalizer: true, thisBoot: true}, want: stepRunValidation},
		"but not in a /pav that another pod has":                 {o: observation{exists: true, hasFinalizer: true, thisBoot: true, pavInUse: true}, want: stepWait},
		"a recorded validation pod that is not there is created": {o: validating, want: stepRunValidation},
		"a running validation pod is waited for":                 {o: with(func(o *observation) { o.validationPod = workflow.Running }), want: stepWait},
		"one that is being deleted is waited for":                {o: with(func(o *observation) { o.validationPod = workflow.Stopping }), want: stepWait},
		"the volume is valid when it has completed":              {o: with(func(o *observation) { o.validationPod = workflow.Succeeded }), want: stepAdmit},
		"the volume is invalid when it has failed":               {o: with(func(o *observation) { o.validationPod = workflow.Failed }), want: stepReject},
		"after that the staging pod waits for /pav":              {o: with(func(o *observation) { o.validated, o.validationPod, o.pavInUse = true, workflow.Succeeded, true }), want: stepWait},
		"then it runs":                                {o: with(func(o *observation) { o.validated, o.validationPod = true, workflow.Succeeded }), want: stepRunStaging},
		"also where the validation pod is gone":       {o: with(func(o *observation) { o.validated = true }), want: stepRunStaging},
		"a validation of an earlier boot is reverted": {o: with(func(o *observation) { o.thisBoot = false }), want: stepRevert},
		"a failed one is reverted without unstaging pod": {o: with(func(o *observation) {
			o.phase, o.validationPod, o.unstagingWanted = pavv1.StageUnstaging, workflow.Failed, true
		}), want: stepClean},
		"not before /pav is free": {o: with(func(o *observation) {
			o.phase, o.validationPod, o.pavInUse = pavv1.StageUnstaging, workflow.Failed, true
		}), want: stepWait},
		"a running validation pod is stopped where all is reverted": {o: with(func(o *observation) { o.phase, o.validationPod = pavv1.StageUnstaging, workflow.Running }), want: stepStop},
		"and waited for": {o: with(func(o *observation) { o.phase, o.validationPod = pavv1.StageUnstaging, workflow.Stopping }), want: stepWait},
		"but is of no interest once the volume was found to be valid": {o: with(func(o *observation) {
			o.phase, o.validated, o.validationPod, o.stagingIntended = pavv1.StageUnstaging, true, workflow.Stopping, true
		}), want: stepClean},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stageTable.decide(test.o).step; got != test.want {
				t.Errorf("got step %s, want %s", got, test.want)
			}
		})
	}
}

func TestDecideStage_ScopePod(t *testing.T) {
	claim := observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, claimOnly: true}
	with := func(change func(*observation)) observation {
		o := claim
		change(&o)
		return o
	}
	tests := map[string]struct {
		o    observation
		want step
	}{
		"a claim is validated":                 {o: with(func(o *observation) { o.validated = false }), want: stepRunValidation},
		"a claim needs no staging pod":         {o: claim, want: stepConfirm},
		"a claim is done":                      {o: with(func(o *observation) { o.phase = pavv1.StageStaged }), want: stepDone},
		"what is mounted there is not trusted": {o: with(func(o *observation) { o.attached = true }), want: stepDetach},
		"a claim that is given up is given up after the stages that hang on it": {o: with(func(o *observation) {
			o.phase, o.clients = pavv1.StageUnstaging, true
		}), want: stepUnstageClients},
		"then it goes": {o: with(func(o *observation) { o.phase = pavv1.StageUnstaging }), want: stepClean},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stageTable.decide(test.o).step; got != test.want {
				t.Errorf("got step %s, want %s", got, test.want)
			}
		})
	}
}

func TestDecideStage_Restaging(t *testing.T) {
	unstaging := observation{
		exists: true, hasFinalizer: true, thisBoot: true, validated: true, restaging: true, published: true,
		phase: pavv1.StageUnstaging, stagingIntended: true, stagingPod: workflow.Failed, unstagingWanted: true,
	}
	staging := unstaging
	staging.phase, staging.stagingPod = pavv1.StageStaging, workflow.Absent
	with := func(o observation, change func(*observation)) observation {
		change(&o)
		return o
	}
	tests := map[string]struct {
		o    observation
		want step
	}{
		"the dead volume is detached first":                            {o: with(unstaging, func(o *observation) { o.attached = true }), want: stepDetach},
		"a staging pod that lives yet is stopped":                      {o: with(unstaging, func(o *observation) { o.stagingPod = workflow.Running }), want: stepStop},
		"and waited for":                                               {o: with(unstaging, func(o *observation) { o.stagingPod = workflow.Stopping }), want: stepWait},
		"the unstaging pod waits until the staging pod's /pav is free": {o: with(unstaging, func(o *observation) { o.pavInUse = true }), want: stepWait},
		"the unstaging pod runs while clients have the dead volume":    {o: unstaging, want: stepRunUnstaging},
		"a failed unstaging pod is retried": {o: with(unstaging, func(o *observation) {
			o.unstagingIntended, o.unstagingPod = true, workflow.Failed
		}), want: stepRetry},
		"when it has succeeded, another attempt begins": {o: with(unstaging, func(o *observation) {
			o.unstagingIntended, o.unstagingPod = true, workflow.Succeeded
		}), want: stepRenew},
		"without an unstaging pod, at once":                   {o: with(unstaging, func(o *observation) { o.unstagingWanted = false }), want: stepRenew},
		"that which was never begun is renewed too":           {o: with(unstaging, func(o *observation) { o.stagingIntended, o.stagingPod = false, workflow.Absent }), want: stepRenew},
		"the next attempt waits after a failure":              {o: with(staging, func(o *observation) { o.stagingIntended, o.backoff = false, time.Second }), want: stepWait},
		"then its staging pod runs":                           {o: with(staging, func(o *observation) { o.stagingIntended = false }), want: stepRunStaging},
		"but not in a /pav that another pod has":              {o: with(staging, func(o *observation) { o.stagingIntended, o.pavInUse = false, true }), want: stepWait},
		"a recorded staging pod that is not there is created": {o: staging, want: stepRunStaging},
		"what is mounted before a staging pod is not trusted": {o: with(staging, func(o *observation) { o.stagingIntended, o.attached = false, true }), want: stepDetach},
		"a staging pod that is ready has its volume mounted":  {o: with(staging, func(o *observation) { o.stagingPod, o.ready = workflow.Running, true }), want: stepAttach},
		"a mounted volume is mounted over the dead ones":      {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Running, true }), want: stepOverMount},
		"a staging pod that failed has its failure recorded":  {o: with(staging, func(o *observation) { o.stagingPod = workflow.Failed }), want: stepFail},
		"not that of a pod that has failed":                   {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Failed, true }), want: stepDetach},
		"nor that of one that is being stopped":               {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Stopping, true }), want: stepDetach},
		"nor that of one that was forced away":                {o: with(staging, func(o *observation) { o.attached = true }), want: stepDetach},
		"one that has completed is as good as one that runs":  {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Succeeded, true }), want: stepOverMount},
		"and so may be that of one that was ready too early": {o: with(staging, func(o *observation) {
			o.stagingPod, o.attached, o.settling = workflow.Running, true, time.Second
		}), want: stepWait},
		"what clients may have already is given to all":        {o: with(staging, func(o *observation) { o.stagingPod, o.attached, o.covering = workflow.Failed, true, true }), want: stepOverMount},
		"nothing else is mounted where it was unmounted":       {o: with(staging, func(o *observation) { o.stagingPod, o.covering = workflow.Running, true }), want: stepBlockOnClients},
		"in another boot no client is left, and all is undone": {o: with(staging, func(o *observation) { o.thisBoot = false }), want: stepRevert},
		"wherever it was": {o: with(unstaging, func(o *observation) { o.thisBoot = false }), want: stepRevert},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stageTable.decide(test.o).step; got != test.want {
				t.Errorf("got step %s, want %s", got, test.want)
			}
		})
	}
}

// The PavStage may be taken away while the volume is staged again, as where the node is given up.
func TestDecideRestage_NeverMakesAStage(t *testing.T) {
	restaging := observation{
		exists: true, hasFinalizer: true, thisBoot: true, validated: true, restaging: true, stagingIntended: true, phase: pavv1.StageStaging,
	}
	tests := map[string]struct {
		change func(*observation)
		want   step
	}{
		"it goes on":                    {change: func(*observation) {}, want: stepRunStaging},
		"unless the stage is gone":      {change: func(o *observation) { *o = observation{} }, want: stepDone},
		"or has left something":         {change: func(o *observation) { *o = observation{leftover: true} }, want: stepDone},
		"or is on its way out":          {change: func(o *observation) { *o = observation{terminating: true} }, want: stepDone},
		"or is another":                 {change: func(o *observation) { *o = observation{exists: true, hasFinalizer: true} }, want: stepDone},
		"or the record of a failure":    {change: func(o *observation) { *o = observation{exists: true, phase: pavv1.StageFailed} }, want: stepDone},
		"or is being unstaged":          {change: func(o *observation) { o.restaging, o.phase = false, pavv1.StageUnstaging }, want: stepDone},
		"in the end there is no more":   {change: func(o *observation) { o.restaging, o.phase, o.attached = false, pavv1.StageStaged, true }, want: stepDone},
		"not even where it is detached": {change: func(o *observation) { o.restaging, o.phase = false, pavv1.StageStaged }, want: stepDone},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := restaging
			test.change(&o)
			if got := restageTable.decide(o).step; got != test.want {
				t.Errorf("got step %s, want %s", got, test.want)
			}
		})
	}
}

func TestDecideUnstage(t *testing.T) {
	base := observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, phase: pavv1.StageUnstaging, stagingIntended: true, unstagingWanted: true}
	with := func(change func(*observation)) observation {
		o := base
		change(&o)
		return o
	}
	tests := map[string]struct {
		o    observation
		want step
	}{
		"nothing is left to do without a record": {o: observation{}, want: stepDone},
		"a volume that a running pod has is not taken": {o: with(func(o *observation) {
			o.phase, o.published, o.attached, o.inUse = pavv1.StageStaged, true, true, true
		}), want: stepInUse},
		"nor where its unstaging began":                          {o: with(func(o *observation) { o.published, o.attached, o.inUse = true, true, true }), want: stepInUse},
		"nor where it is being staged again":                     {o: with(func(o *observation) { o.restaging, o.published, o.inUse = true, true, true }), want: stepInUse},
		"nor where its PavStage was deleted":                     {o: observation{leftover: true, published: true, inUse: true}, want: stepInUse},
		"a mount without a record is taken away":                 {o: observation{leftover: true, attached: true}, want: stepSweep},
		"but not under a pod of the stage that was":              {o: observation{leftover: true, pavInUse: true}, want: stepWait},
		"and clients are rid of it first":                        {o: observation{leftover: true, published: true, attached: true}, want: stepUnpublish},
		"as are their stages":                                    {o: observation{leftover: true, clients: true}, want: stepUnstageClients},
		"what the record of a failure has left is swept":         {o: observation{exists: true, phase: pavv1.StageFailed, leftover: true}, want: stepSweep},
		"a volume that is being staged again is let go of first": {o: with(func(o *observation) { o.restaging, o.published = true, true }), want: stepRevert},
		"a stage of another boot is unstaged":                    {o: with(func(o *observation) { o.thisBoot = false }), want: stepRunUnstaging},
		"clients are rid of the volume before it is unmounted":   {o: with(func(o *observation) { o.published, o.attached, o.stagingPod = true, true, workflow.Running }), want: stepUnpublish},
		"but after the beginning is on record":                   {o: with(func(o *observation) { o.phase, o.published, o.attached = pavv1.StageStaged, true, true }), want: stepRevert},
		"stages of clients go before the claim":                  {o: with(func(o *observation) { o.claimOnly, o.clients, o.stagingIntended = true, true, false }), want: stepUnstageClients},
		"a mismatch is no hindrance":                             {o: with(func(o *observation) { o.phase, o.mismatch = pavv1.StageStaged, true }), want: stepRevert},
		"a volume that is being validated is unstaged": {o: with(func(o *observation) {
			o.phase, o.validated, o.validationPod = pavv1.StageValidating, false, workflow.Running
		}), want: stepRevert},
		"a record on its way out is nothing to unstage":                {o: observation{terminating: true}, want: stepDone},
		"a staged volume begins to be unstaged before it is unmounted": {o: with(func(o *observation) { o.phase, o.attached = pavv1.StageStaged, true }), want: stepRevert},
		"a volume that is still being staged is unstaged":              {o: with(func(o *observation) { o.phase, o.stagingPod = pavv1.StageStaging, workflow.Running }), want: stepRevert},
		"a record with nothing done is unstaged":                       {o: observation{exists: true, hasFinalizer: true, thisBoot: true}, want: stepRevert},
		"the volume is detached before the pod is stopped":             {o: with(func(o *observation) { o.attached, o.stagingPod = true, workflow.Running }), want: stepDetach},
		"a running staging pod is stopped":                             {o: with(func(o *observation) { o.stagingPod = workflow.Running }), want: stepStop},
		"a stopping staging pod is waited for":                         {o: with(func(o *observation) { o.stagingPod = workflow.Stopping }), want: stepWait},
		"the unstaging pod waits until the staging pod's /pav is free": {o: with(func(o *observation) { o.stagingPod, o.pavInUse = workflow.Succeeded, true }), want: stepWait},
		"the unstaging pod runs on a full node, too":                   {o: with(func(o *observation) { o.stagingPod, o.full = workflow.Succeeded, true }), want: stepRunUnstaging},
		"then the unstaging pod runs":                                  {o: with(func(o *observation) { o.stagingPod = workflow.Succeeded }), want: stepRunUnstaging},
		"also where the staging pod is gone":                           {o: with(func(*observation) {}), want: stepRunUnstaging},
		"without an unstaging pod, /pav is removed":                    {o: with(func(o *observation) { o.unstagingWanted = false }), want: stepClean},
		"a recorded unstaging pod that is not there is created":        {o: with(func(o *observation) { o.unstagingIntended = true }), want: stepRunUnstaging},
		"but not before its time":                                      {o: with(func(o *observation) { o.unstagingIntended, o.backoff = true, time.Second }), want: stepWait},
		"nor is one whose template failed":                             {o: with(func(o *observation) { o.backoff = time.Second }), want: stepWait},
		"a running unstaging pod is waited for":                        {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod, o.pavInUse = true, workflow.Running, true }), want: stepWait},
		"an unstaging pod that cannot start makes room for the next": {o: with(func(o *observation) {
			o.unstagingIntended, o.unstagingPod, o.stuck = true, workflow.Running, true
		}), want: stepGiveUp},
		"a failed unstaging pod is retried": {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod = true, workflow.Failed }), want: stepRetry},
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
			if got := unstageTable.decide(test.o).step; got != test.want {
				t.Errorf("got step %s, want %s", got, test.want)
			}
		})
	}
}

func TestObservation_Due(t *testing.T) {
	tests := map[string]struct {
		o    observation
		want time.Duration
	}{
		"never":                {o: observation{}},
		"the next attempt":     {o: observation{backoff: 2}, want: 2},
		"telling":              {o: observation{reportIn: 3}, want: 3},
		"whatever comes first": {o: observation{backoff: 2, reportIn: 3}, want: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.o.due(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestOrReport_ReportsOnlyBeforeWaiting(t *testing.T) {
	if got := orReport(observation{reportDue: true}, stepWait); got != stepReport {
		t.Errorf("got step %s, want %s", got, stepReport)
	}
	if got := orReport(observation{reportDue: true}, stepStop); got != stepStop {
		t.Errorf("got step %s, want %s", got, stepStop)
	}
	if got := orReport(observation{}, stepWait); got != stepWait {
		t.Errorf("got step %s, want %s", got, stepWait)
	}
}
