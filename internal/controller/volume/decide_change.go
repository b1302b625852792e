package volume

import (
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/workflow"
)

// changePodTable is for a recorded expansion or modification pod. It is seen to its end, whatever becomes of the volume.
var changePodTable = table{
	{Name: "the change is not wanted any more, and its pod was not created", When: func(o observation) bool {
		return pod(attempt.None, attempt.Intended)(o) && !o.wantsPod()
	}, Then: to(stepDropPod)},
	{Name: "the claim does not show the change", When: func(o observation) bool {
		return pod(attempt.None, attempt.Intended)(o) && o.claimBehind()
	}, Then: to(stepShowClaim)},
	{Name: "the pod that changes the volume waits for a slot", When: pod(attempt.None, attempt.Intended), Then: func(o observation) decision {
		return rule.OfPod(o.attempt().DecideQueued(), conditionOf(o.volume.Status.Step))
	}},
	{Name: "the change is not wanted any more, and its pod has not started", When: func(o observation) bool {
		return o.progress() == attempt.Running && !workflow.Started(o.pod()) && !o.wantsPod()
	}, Then: to(stepStopPod)},
	{Name: "the pod that changes the volume runs", When: pod(attempt.Running, attempt.Ready), Then: func(o observation) decision {
		return rule.OfPod(o.attempt().DecideRunning(), conditionOf(o.volume.Status.Step))
	}},
	{Name: "the pod that changes the volume is being deleted", When: pod(attempt.Stopping), Then: func(o observation) decision {
		return rule.OfPod(o.attempt().DecideStopping(), conditionOf(o.volume.Status.Step))
	}},
	{Name: "the result of the pod that changes the volume is not reported", When: func(o observation) bool {
		return o.progress() == attempt.Reporting && o.needsReport() && !o.isUnreportable()
	}, Then: func(o observation) decision {
		return rule.OfPod(attempt.DecideReporting(o.now, o.pod()), conditionOf(o.volume.Status.Step))
	}},
	{Name: "the pod that changes the volume succeeded", When: func(o observation) bool {
		return o.progress() == attempt.Succeeded || o.progress() == attempt.Reporting && workflow.Judge(o.pod()) == workflow.Succeeded
	}, Then: to(stepRecordChanged)},
	{Name: "the pod that changes the volume failed", When: always, Then: to(stepRecordFailure)},
}

// isChange reports whether a workflow changes a volume that exists.
func isChange(kind string) bool {
	return kind == pavv1.WorkflowExpansion || kind == pavv1.WorkflowModification
}

// changing reports whether an expansion or modification pod is recorded.
func (o observation) changing() bool {
	return o.volume.Status.Pod != nil && isChange(workflows[o.volume.Status.Step])
}

// expanding reports whether an expansion pod is recorded, and modifying whether a modification pod is.
func (o observation) expanding() bool {
	return o.volume.Status.Step == pavv1.StepExpanding && o.volume.Status.Pod != nil
}

func (o observation) modifying() bool {
	return o.volume.Status.Step == pavv1.StepModifying && o.volume.Status.Pod != nil
}

// canChange reports whether a claim is bound to the volume, and what it requests counts.
func (o observation) canChange() bool {
	status := &o.volume.Status
	return o.user != nil && o.user.DeletionTimestamp == nil && !o.deleting() && status.Phase == pavv1.VolumeReady && status.CreationPod == nil
}

// wantsPod reports whether the recorded pod, which was not created, is still to be: the volume is in use, and the change is wanted.
func (o observation) wantsPod() bool {
	pv := o.ownPV()
	if pv == nil || o.released(pv) {
		return false
	}
	if o.modifying() {
		return o.wantsModificationPod()
	}
	return o.wantsExpansionPod()
}

// isOfFormer reports whether an attempt is one that a former claim of the volume asked for. It is not continued for the present one.
func (o observation) isOfFormer(a *pavv1.ChangeAttempt) bool {
	return o.user != nil && !a.IsOf(o.user.UID)
}

// changeBackoff returns how long the attempt after a failed one has to wait. If it has another target, it does not wait for what was
// infeasible.
func (o observation) changeBackoff(last *pavv1.ChangeAttempt, another bool) time.Duration {
	failure := last.Failure
	if another && failure.Reason == pavv1.FailureInfeasible {
		failure = asOfAnotherRequest(failure)
	}
	return o.retryIn(last.Attempt, failure)
}

// needsReport reports whether what a pod left in /pav matters: the storage is not about to be deleted.
func (o observation) needsReport() bool {
	return o.user != nil || o.volume.Spec.Static || o.retainedMeanwhile()
}

// isUnreportable reports whether the node of a pod that has succeeded is gone, so that nobody reports what it left.
func (o observation) isUnreportable() bool {
	return o.nodeGone && !attempt.HasEndedWithin(o.now, o.pod(), attempt.ResultDelay)
}

// claimBehind reports whether the status of the claim has to be written.
func (o observation) claimBehind() bool { return o.user != nil && viewOf(o) != viewShown(o.user) }
