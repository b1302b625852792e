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
		"no PavStage: record it":                                            {o: observation{}, want: stepRecord},
		"volume is withheld from nodes: give way":                           {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, withheld: true}, want: stepGiveWay},
		"PavStage without a status: write it":                               {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, unbegun: true}, want: stepBegin},
		"deleted PavStage left a directory: remove it":                      {o: observation{leftover: true, attached: true}, want: stepSweep},
		"PavStage is being deleted: wait for its end":                       {o: observation{terminating: true}, want: stepYield},
		"mount before any staging pod: unmount it":                          {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, attached: true}, want: stepDetach},
		"mount after a failed attempt: unmount it":                          {o: observation{exists: true, phase: pavv1.StageFailed, thisBoot: true, stagingIntended: true, attached: true}, want: stepDetach},
		"new PavStage: run the staging pod":                                 {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true}, want: stepRunStaging},
		"deleted PavStage left a directory that a client has: refuse":       {o: observation{leftover: true, published: true, occupied: true}, want: stepOccupied},
		"deleted PavStage left a directory that its pod has: wait":          {o: observation{leftover: true, pavInUse: true}, want: stepWait},
		"staged with other parameters: refuse":                              {o: with(staging, func(o *observation) { o.mismatch = true }), want: stepRefuse},
		"another pod has /pav: wait before the staging pod":                 {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, pavInUse: true}, want: stepWait},
		"recorded staging pod does not exist: run it":                       {o: staging, want: stepRunStaging},
		"node without pod slots: wait before the staging pod":               {o: observation{exists: true, hasFinalizer: true, thisBoot: true, validated: true, full: true}, want: stepWait},
		"node without pod slots: wait before the validation pod":            {o: observation{exists: true, hasFinalizer: true, thisBoot: true, full: true}, want: stepWait},
		"node without pod slots, recorded staging pod does not exist: wait": {o: with(staging, func(o *observation) { o.full = true }), want: stepWait},
		"node without pod slots, volume is being restaged: wait":            {o: with(staging, func(o *observation) { o.restaging, o.stagingIntended, o.full = true, false, true }), want: stepWait},
		"node without pod slots, staging pod is ready: attach":              {o: with(staging, func(o *observation) { o.stagingPod, o.ready, o.full = workflow.Running, true, true }), want: stepAttach},
		"staging pod runs: wait":                                            {o: with(staging, func(o *observation) { o.stagingPod = workflow.Running }), want: stepWait},
		"staging pod runs for long, retry: stop it":                         {o: with(staging, func(o *observation) { o.stagingPod, o.stopRequested = workflow.Running, true }), want: stepFailStopped},
		"staging pod runs for long, for no pod: leave it to kubelet":        {o: with(staging, func(o *observation) { o.stagingPod, o.unneeded = workflow.Running, true }), want: stepLeave},
		"staging pod is ready, retry: attach":                               {o: with(staging, func(o *observation) { o.stagingPod, o.ready, o.stopRequested = workflow.Running, true, true }), want: stepAttach},
		"staging pod is ready: attach":                                      {o: with(staging, func(o *observation) { o.stagingPod, o.ready = workflow.Running, true }), want: stepAttach},
		"staging pod succeeded: attach":                                     {o: with(staging, func(o *observation) { o.stagingPod = workflow.Succeeded }), want: stepAttach},
		"staging pod is being deleted: wait":                                {o: with(staging, func(o *observation) { o.stagingPod = workflow.Stopping }), want: stepWait},
		"staging pod failed: record the failure":                            {o: with(staging, func(o *observation) { o.stagingPod = workflow.Failed }), want: stepFail},
		"volume is attached: confirm":                                       {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Succeeded, true }), want: stepConfirm},
		"volume is staged: done":                                            {o: with(staging, func(o *observation) { o.phase, o.attached = pavv1.StageStaged, true }), want: stepDone},
		"volume is staged, staging pod runs: done": {o: with(staging, func(o *observation) {
			o.phase, o.attached, o.stagingPod, o.outcomeHeld = pavv1.StageStaged, true, workflow.Running, true
		}), want: stepDone},
		"volume is staged, staging pod completed with its finalizer: confirm": {o: with(staging, func(o *observation) {
			o.phase, o.attached, o.stagingPod, o.outcomeHeld = pavv1.StageStaged, true, workflow.Succeeded, true
		}), want: stepConfirm},
		"volume is staged, staging pod failed: leave it to the monitor": {o: with(staging, func(o *observation) {
			o.phase, o.attached, o.stagingPod, o.outcomeHeld = pavv1.StageStaged, true, workflow.Failed, true
		}), want: stepDone},
		"volume is attached, staging pod runs: confirm": {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Running, true }), want: stepConfirm},
		"volume is attached, a mount may still follow: wait": {o: with(staging, func(o *observation) {
			o.stagingPod, o.attached, o.settling = workflow.Running, true, time.Second
		}), want: stepWait},
		"volume is attached, staging pod failed: unmount it": {o: with(staging, func(o *observation) {
			o.stagingPod, o.attached = workflow.Failed, true
		}), want: stepDetach},
		"volume is attached, staging pod is being deleted: unmount it": {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Stopping, true }), want: stepDetach},
		"staging pod had /pav and is gone: record the failure":         {o: with(staging, func(o *observation) { o.given = true }), want: stepFail},
		"volume is attached, staging pod is gone: unmount it":          {o: with(staging, func(o *observation) { o.attached = true }), want: stepDetach},
		"volume is staged, staging pod is gone: done":                  {o: with(staging, func(o *observation) { o.phase, o.attached = pavv1.StageStaged, true }), want: stepDone},
		"staged volume was unmounted: revert":                          {o: with(staging, func(o *observation) { o.phase, o.stagingPod = pavv1.StageStaged, workflow.Running }), want: stepRevert},
		"staged volume was unmounted, clients have it: refuse": {o: with(staging, func(o *observation) {
			o.phase, o.published, o.stagingPod = pavv1.StageStaged, true, workflow.Running
		}), want: stepBlockOnClients},
		"node restarted since the volume was staged: revert":          {o: with(staging, func(o *observation) { o.phase, o.thisBoot = pavv1.StageStaged, false }), want: stepRevert},
		"last attempt failed: replace its PavStage":                   {o: observation{exists: true, thisBoot: true, phase: pavv1.StageFailed, stagingIntended: true}, want: stepReplace},
		"last attempt failed, PavStage has its finalizer: release it": {o: observation{exists: true, hasFinalizer: true, thisBoot: true, phase: pavv1.StageFailed, stagingIntended: true}, want: stepForget},
		"unstaging has begun, staging pod runs: stop the pod":         {o: with(staging, func(o *observation) { o.phase, o.stagingPod = pavv1.StageUnstaging, workflow.Running }), want: stepStop},
		"unstaging has begun, volume is attached: unmount it":         {o: with(staging, func(o *observation) { o.phase, o.attached = pavv1.StageUnstaging, true }), want: stepDetach},
		"unstaging has begun, no pod ran: remove /pav":                {o: observation{exists: true, hasFinalizer: true, thisBoot: true, phase: pavv1.StageUnstaging, unstagingWanted: true}, want: stepClean},
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
		"new PavStage: run the validation pod":                                  {o: observation{exists: true, hasFinalizer: true, thisBoot: true}, want: stepRunValidation},
		"another pod has /pav: wait before the validation pod":                  {o: observation{exists: true, hasFinalizer: true, thisBoot: true, pavInUse: true}, want: stepWait},
		"recorded validation pod does not exist: run it":                        {o: validating, want: stepRunValidation},
		"validation pod runs for long, retry: stop it":                          {o: with(func(o *observation) { o.validationPod, o.stopRequested = workflow.Running, true }), want: stepFailStopped},
		"validation pod runs for long, for no pod: leave it to kubelet":         {o: with(func(o *observation) { o.validationPod, o.unneeded = workflow.Running, true }), want: stepLeave},
		"validation pod runs: wait":                                             {o: with(func(o *observation) { o.validationPod = workflow.Running }), want: stepWait},
		"validation pod is being deleted: wait":                                 {o: with(func(o *observation) { o.validationPod = workflow.Stopping }), want: stepWait},
		"validation pod succeeded: the volume is valid":                         {o: with(func(o *observation) { o.validationPod = workflow.Succeeded }), want: stepAdmit},
		"validation pod failed: the volume is not valid":                        {o: with(func(o *observation) { o.validationPod = workflow.Failed }), want: stepReject},
		"volume is valid, validation pod has /pav: wait before the staging pod": {o: with(func(o *observation) { o.validated, o.validationPod, o.pavInUse = true, workflow.Succeeded, true }), want: stepWait},
		"volume is valid: run the staging pod":                                  {o: with(func(o *observation) { o.validated, o.validationPod = true, workflow.Succeeded }), want: stepRunStaging},
		"volume is valid, validation pod is gone: run the staging pod":          {o: with(func(o *observation) { o.validated = true }), want: stepRunStaging},
		"node restarted during the validation: revert":                          {o: with(func(o *observation) { o.thisBoot = false }), want: stepRevert},
		"validation failed: remove /pav without an unstaging pod": {o: with(func(o *observation) {
			o.phase, o.validationPod, o.unstagingWanted = pavv1.StageUnstaging, workflow.Failed, true
		}), want: stepClean},
		"validation failed, pod has /pav: wait": {o: with(func(o *observation) {
			o.phase, o.validationPod, o.pavInUse = pavv1.StageUnstaging, workflow.Failed, true
		}), want: stepWait},
		"unstaging has begun, validation pod runs: stop the pod":     {o: with(func(o *observation) { o.phase, o.validationPod = pavv1.StageUnstaging, workflow.Running }), want: stepStop},
		"unstaging has begun, validation pod is being deleted: wait": {o: with(func(o *observation) { o.phase, o.validationPod = pavv1.StageUnstaging, workflow.Stopping }), want: stepWait},
		"unstaging has begun, volume is valid, validation pod is being deleted: remove /pav": {o: with(func(o *observation) {
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
		"volume is not validated: run the validation pod":   {o: with(func(o *observation) { o.validated = false }), want: stepRunValidation},
		"volume is valid: reserve it without a staging pod": {o: claim, want: stepConfirm},
		"volume is reserved: done":                          {o: with(func(o *observation) { o.phase = pavv1.StageStaged }), want: stepDone},
		"volume is attached: unmount it":                    {o: with(func(o *observation) { o.attached = true }), want: stepDetach},
		"unstaging has begun, client pods have stages: unstage these first": {o: with(func(o *observation) {
			o.phase, o.clients = pavv1.StageUnstaging, true
		}), want: stepUnstageClients},
		"unstaging has begun, no client pod has a stage: remove /pav": {o: with(func(o *observation) { o.phase = pavv1.StageUnstaging }), want: stepClean},
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
		"dead volume is attached: unmount it":                           {o: with(unstaging, func(o *observation) { o.attached = true }), want: stepDetach},
		"unstaging the dead volume, staging pod runs: stop it":          {o: with(unstaging, func(o *observation) { o.stagingPod = workflow.Running }), want: stepStop},
		"unstaging the dead volume, staging pod is being deleted: wait": {o: with(unstaging, func(o *observation) { o.stagingPod = workflow.Stopping }), want: stepWait},
		"unstaging the dead volume, staging pod has /pav: wait":         {o: with(unstaging, func(o *observation) { o.pavInUse = true }), want: stepWait},
		"unstaging the dead volume: run the unstaging pod":              {o: unstaging, want: stepRunUnstaging},
		"unstaging pod failed: retry": {o: with(unstaging, func(o *observation) {
			o.unstagingIntended, o.unstagingPod = true, workflow.Failed
		}), want: stepRetry},
		"unstaging pod succeeded: begin the next attempt": {o: with(unstaging, func(o *observation) {
			o.unstagingIntended, o.unstagingPod = true, workflow.Succeeded
		}), want: stepRenew},
		"no unstaging pod in the definition: begin the next attempt":                {o: with(unstaging, func(o *observation) { o.unstagingWanted = false }), want: stepRenew},
		"no staging pod ran: begin the next attempt":                                {o: with(unstaging, func(o *observation) { o.stagingIntended, o.stagingPod = false, workflow.Absent }), want: stepRenew},
		"next attempt is not due: wait":                                             {o: with(staging, func(o *observation) { o.stagingIntended, o.backoff = false, time.Second }), want: stepWait},
		"next attempt is due: run the staging pod":                                  {o: with(staging, func(o *observation) { o.stagingIntended = false }), want: stepRunStaging},
		"next attempt is due, another pod has /pav: wait":                           {o: with(staging, func(o *observation) { o.stagingIntended, o.pavInUse = false, true }), want: stepWait},
		"recorded staging pod does not exist: run it":                               {o: staging, want: stepRunStaging},
		"mount before any staging pod: unmount it":                                  {o: with(staging, func(o *observation) { o.stagingIntended, o.attached = false, true }), want: stepDetach},
		"staging pod runs for long, retry: stop it":                                 {o: with(staging, func(o *observation) { o.stagingPod, o.stopRequested = workflow.Running, true }), want: stepFailStopped},
		"staging pod runs for long, for no pod: leave it to kubelet":                {o: with(staging, func(o *observation) { o.stagingPod, o.unneeded = workflow.Running, true }), want: stepLeave},
		"staging pod is ready, retry: attach":                                       {o: with(staging, func(o *observation) { o.stagingPod, o.ready, o.stopRequested = workflow.Running, true, true }), want: stepAttach},
		"staging pod is ready: attach":                                              {o: with(staging, func(o *observation) { o.stagingPod, o.ready = workflow.Running, true }), want: stepAttach},
		"new volume is attached: mount it over the dead one":                        {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Running, true }), want: stepOverMount},
		"staging pod failed: record the failure":                                    {o: with(staging, func(o *observation) { o.stagingPod = workflow.Failed }), want: stepFail},
		"new volume is attached, staging pod failed: unmount it":                    {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Failed, true }), want: stepDetach},
		"new volume is attached, staging pod is being deleted: unmount it":          {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Stopping, true }), want: stepDetach},
		"new volume is attached, staging pod is gone: unmount it":                   {o: with(staging, func(o *observation) { o.attached = true }), want: stepDetach},
		"new volume is attached, staging pod succeeded: mount it over the dead one": {o: with(staging, func(o *observation) { o.stagingPod, o.attached = workflow.Succeeded, true }), want: stepOverMount},
		"new volume is attached, a mount may still follow: wait": {o: with(staging, func(o *observation) {
			o.stagingPod, o.attached, o.settling = workflow.Running, true, time.Second
		}), want: stepWait},
		"a client may have the new volume: mount it for all":            {o: with(staging, func(o *observation) { o.stagingPod, o.attached, o.covering = workflow.Failed, true, true }), want: stepOverMount},
		"a client may have the new volume, which was unmounted: refuse": {o: with(staging, func(o *observation) { o.stagingPod, o.covering = workflow.Running, true }), want: stepBlockOnClients},
		"node restarted while the volume was staged: revert":            {o: with(staging, func(o *observation) { o.thisBoot = false }), want: stepRevert},
		"node restarted while the volume was unstaged: revert":          {o: with(unstaging, func(o *observation) { o.thisBoot = false }), want: stepRevert},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stageTable.decide(test.o).step; got != test.want {
				t.Errorf("got step %s, want %s", got, test.want)
			}
		})
	}
}

// The PavStage may be deleted while the volume is restaged, for example when the node is lost.
func TestDecideRestage_NeverCreatesAPavStage(t *testing.T) {
	restaging := observation{
		exists: true, hasFinalizer: true, thisBoot: true, validated: true, restaging: true, stagingIntended: true, phase: pavv1.StageStaging,
	}
	tests := map[string]struct {
		change func(*observation)
		want   step
	}{
		"recorded staging pod does not exist: run it":         {change: func(*observation) {}, want: stepRunStaging},
		"PavStage is gone: done":                              {change: func(o *observation) { *o = observation{} }, want: stepDone},
		"PavStage is gone and left a directory: done":         {change: func(o *observation) { *o = observation{leftover: true} }, want: stepDone},
		"PavStage is being deleted: done":                     {change: func(o *observation) { *o = observation{terminating: true} }, want: stepDone},
		"another PavStage, which is not being restaged: done": {change: func(o *observation) { *o = observation{exists: true, hasFinalizer: true} }, want: stepDone},
		"record of a failure: done":                           {change: func(o *observation) { *o = observation{exists: true, phase: pavv1.StageFailed} }, want: stepDone},
		"volume is being unstaged: done":                      {change: func(o *observation) { o.restaging, o.phase = false, pavv1.StageUnstaging }, want: stepDone},
		"volume is restaged: done":                            {change: func(o *observation) { o.restaging, o.phase, o.attached = false, pavv1.StageStaged, true }, want: stepDone},
		"volume is restaged, and unmounted since: done":       {change: func(o *observation) { o.restaging, o.phase = false, pavv1.StageStaged }, want: stepDone},
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
		"no PavStage: done": {o: observation{}, want: stepDone},
		"a running pod has the staged volume: refuse": {o: with(func(o *observation) {
			o.phase, o.published, o.attached, o.inUse = pavv1.StageStaged, true, true, true
		}), want: stepInUse},
		"a running pod has the volume, unstaging has begun: refuse":        {o: with(func(o *observation) { o.published, o.attached, o.inUse = true, true, true }), want: stepInUse},
		"a running pod has the volume, which is being restaged: refuse":    {o: with(func(o *observation) { o.restaging, o.published, o.inUse = true, true, true }), want: stepInUse},
		"a running pod has the volume, PavStage was deleted: refuse":       {o: observation{leftover: true, published: true, inUse: true}, want: stepInUse},
		"deleted PavStage left a mount: remove it":                         {o: observation{leftover: true, attached: true}, want: stepSweep},
		"deleted PavStage left a directory that its pod has: wait":         {o: observation{leftover: true, pavInUse: true}, want: stepWait},
		"deleted PavStage left a volume in targets: unmount these first":   {o: observation{leftover: true, published: true, attached: true}, want: stepUnpublish},
		"deleted PavStage left stages of client pods: unstage these first": {o: observation{leftover: true, clients: true}, want: stepUnstageClients},
		"record of a failure left a directory: remove it":                  {o: observation{exists: true, phase: pavv1.StageFailed, leftover: true}, want: stepSweep},
		"volume is being restaged: record the unstaging first":             {o: with(func(o *observation) { o.restaging, o.published = true, true }), want: stepRevert},
		"node restarted: run the unstaging pod":                            {o: with(func(o *observation) { o.thisBoot = false }), want: stepRunUnstaging},
		"targets have the volume: unmount these first":                     {o: with(func(o *observation) { o.published, o.attached, o.stagingPod = true, true, workflow.Running }), want: stepUnpublish},
		"staged volume in targets: record the unstaging first":             {o: with(func(o *observation) { o.phase, o.published, o.attached = pavv1.StageStaged, true, true }), want: stepRevert},
		"client pods have stages: unstage these first":                     {o: with(func(o *observation) { o.claimOnly, o.clients, o.stagingIntended = true, true, false }), want: stepUnstageClients},
		"staged with other parameters: record the unstaging":               {o: with(func(o *observation) { o.phase, o.mismatch = pavv1.StageStaged, true }), want: stepRevert},
		"volume is being validated: record the unstaging": {o: with(func(o *observation) {
			o.phase, o.validated, o.validationPod = pavv1.StageValidating, false, workflow.Running
		}), want: stepRevert},
		"PavStage is being deleted: done":                                     {o: observation{terminating: true}, want: stepDone},
		"staged volume is attached: record the unstaging first":               {o: with(func(o *observation) { o.phase, o.attached = pavv1.StageStaged, true }), want: stepRevert},
		"volume is being staged: record the unstaging":                        {o: with(func(o *observation) { o.phase, o.stagingPod = pavv1.StageStaging, workflow.Running }), want: stepRevert},
		"new PavStage: record the unstaging":                                  {o: observation{exists: true, hasFinalizer: true, thisBoot: true}, want: stepRevert},
		"volume is attached, staging pod runs: unmount it first":              {o: with(func(o *observation) { o.attached, o.stagingPod = true, workflow.Running }), want: stepDetach},
		"staging pod runs: stop it":                                           {o: with(func(o *observation) { o.stagingPod = workflow.Running }), want: stepStop},
		"staging pod is being deleted: wait":                                  {o: with(func(o *observation) { o.stagingPod = workflow.Stopping }), want: stepWait},
		"staging pod has /pav: wait before the unstaging pod":                 {o: with(func(o *observation) { o.stagingPod, o.pavInUse = workflow.Succeeded, true }), want: stepWait},
		"node without pod slots: run the unstaging pod":                       {o: with(func(o *observation) { o.stagingPod, o.full = workflow.Succeeded, true }), want: stepRunUnstaging},
		"staging pod succeeded: run the unstaging pod":                        {o: with(func(o *observation) { o.stagingPod = workflow.Succeeded }), want: stepRunUnstaging},
		"staging pod is gone: run the unstaging pod":                          {o: with(func(*observation) {}), want: stepRunUnstaging},
		"no unstaging pod in the definition: remove /pav":                     {o: with(func(o *observation) { o.unstagingWanted = false }), want: stepClean},
		"recorded unstaging pod does not exist: run it":                       {o: with(func(o *observation) { o.unstagingIntended = true }), want: stepRunUnstaging},
		"recorded unstaging pod is not due: wait":                             {o: with(func(o *observation) { o.unstagingIntended, o.backoff = true, time.Second }), want: stepWait},
		"template of the unstaging pod failed, next attempt is not due: wait": {o: with(func(o *observation) { o.backoff = time.Second }), want: stepWait},
		"unstaging pod runs: wait":                                            {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod, o.pavInUse = true, workflow.Running, true }), want: stepWait},
		"unstaging pod runs for long, retry: stop it": {o: with(func(o *observation) {
			o.unstagingIntended, o.unstagingPod, o.stopRequested = true, workflow.Running, true
		}), want: stepGiveUp},
		"unstaging pod cannot start: stop it": {o: with(func(o *observation) {
			o.unstagingIntended, o.unstagingPod, o.stuck = true, workflow.Running, true
		}), want: stepGiveUp},
		"unstaging pod failed: retry": {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod = true, workflow.Failed }), want: stepRetry},
		"unstaging pod failed, next attempt is not due: wait": {o: with(func(o *observation) {
			o.unstagingIntended, o.unstagingPod, o.backoff = true, workflow.Failed, time.Second
		}), want: stepWait},
		"unstaging pod succeeded and has /pav: wait":   {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod, o.pavInUse = true, workflow.Succeeded, true }), want: stepWait},
		"unstaging pod succeeded: remove /pav":         {o: with(func(o *observation) { o.unstagingIntended, o.unstagingPod = true, workflow.Succeeded }), want: stepClean},
		"record of a failure: done":                    {o: observation{exists: true, phase: pavv1.StageFailed, stagingIntended: true}, want: stepDone},
		"failed attempt has its finalizer: release it": {o: with(func(o *observation) { o.phase = pavv1.StageFailed }), want: stepForget},
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
		"never":                          {o: observation{}},
		"next attempt":                   {o: observation{backoff: 2}, want: 2},
		"report of the cause":            {o: observation{reportIn: 3}, want: 3},
		"next attempt before the report": {o: observation{backoff: 2, reportIn: 3}, want: 2},
		"next look for pods that need the volume": {o: observation{lookIn: 4}, want: 4},
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
