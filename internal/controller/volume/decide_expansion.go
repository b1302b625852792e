package volume

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// expansionTable is for a volume in use without a recorded pod.
var expansionTable = table{
	{"nodes need not leave the volume alone any more", func(o snapshot) bool { return o.holds() && !o.isUncertain() && !o.isToGrow() }, to(stepEndExpansion)},
	{"no claim can let the volume grow", func(o snapshot) bool { return !o.canGrow() }, to(stepDone)},
	{"the PersistentVolume does not have the capacity of the volume", snapshot.pvBehind, to(stepGrowPV)},
	{"the volume need not grow any more", func(o snapshot) bool { return !o.tooSmall() && o.saysThatItGrows() && !o.isUncertain() }, to(stepEndExpansion)},
	{"the claim does not show how large the volume is", snapshot.claimBehind, to(stepShowSize)},
	{"the nodes do not try again yet", func(o snapshot) bool { return !o.tooSmall() && !o.isUncertain() && o.isInfeasibleOnNode() }, again(nodeBackoff)},
	{"the volume is as large as its claim requests", func(o snapshot) bool { return !o.tooSmall() && !o.isUncertain() }, to(stepDone)},
	{"there is no provisioner to expand with", func(o snapshot) bool { return o.provisioner == nil }, func(o snapshot) decision {
		return waitingToGrow("NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, and only it defines how to expand the volume: create it again", o.volume.Spec.Provisioner))
	}},
	{"the volumes of the provisioner cannot grow", func(o snapshot) bool { return o.provisioner.Spec.VolumeExpansion == nil }, func(o snapshot) decision {
		return waitingToGrow("Unsupported", fmt.Sprintf("PavProvisioner %q has no spec.volumeExpansion, so that its volumes cannot grow: the volume has %s, and its claim requests %s",
			o.volume.Spec.Provisioner, o.volume.Status.Capacity, o.requested()))
	}},
	{"the next expansion pod is not due", func(o snapshot) bool { return expansionBackoff(o) > 0 }, again(expansionBackoff)},
	{"no node is to stage the volume until it has grown", func(o snapshot) bool { return o.growsOffline() && !o.holds() }, to(stepHold)},
	{"nodes still have the volume staged", func(o snapshot) bool { return o.growsOffline() && len(reconcile.StagedOn(o.others)) > 0 }, func(o snapshot) decision {
		return waiting(pavv1.VolumeExpanded, "Staged", fmt.Sprintf("PavProvisioner %q expands volumes only while no node has them staged: the volume is staged on %s; it grows when no pod there uses it any more, and no other pod gets it before that",
			o.volume.Spec.Provisioner, strings.Join(reconcile.StagedOn(o.others), ", ")), false)
	}},
	{"the volume is to grow", always, to(stepExpand)},
}

// expansionPodTable is for a recorded expansion pod. It is seen to its end, whatever becomes of the volume.
var expansionPodTable = table{
	{"an expansion is not wanted any more, and its pod was not created", func(o snapshot) bool {
		return pod(attempt.None, attempt.Intended)(o) && !o.wantsPod()
	}, to(stepDropPod)},
	{"the claim does not show that the volume grows", func(o snapshot) bool {
		return pod(attempt.None, attempt.Intended)(o) && o.claimBehind()
	}, to(stepShowSize)},
	{"the expansion pod waits for a slot", pod(attempt.None, attempt.Intended), func(o snapshot) decision {
		return decided(o.attempt().DecideQueued(), pavv1.VolumeExpanded)
	}},
	{"an expansion is not wanted any more, and its pod has not started", func(o snapshot) bool {
		return o.progress() == attempt.Running && !workflow.Started(o.pod()) && !o.wantsPod()
	}, to(stepStopPod)},
	{"the expansion pod runs", pod(attempt.Running, attempt.Ready), func(o snapshot) decision {
		return decided(o.attempt().DecideRunning(), pavv1.VolumeExpanded)
	}},
	{"the expansion pod is being deleted", pod(attempt.Stopping), func(o snapshot) decision {
		return decided(o.attempt().DecideStopping(), pavv1.VolumeExpanded)
	}},
	{"the result of the expansion pod is not reported", func(o snapshot) bool {
		return o.progress() == attempt.Reporting && o.user != nil && !o.isUnreportable()
	}, func(o snapshot) decision {
		return decided(attempt.DecideReporting(o.now, o.pod()), pavv1.VolumeExpanded)
	}},
	{"the expansion pod succeeded", pod(attempt.Reporting, attempt.Succeeded), to(stepRecordExpanded)},
	{"the expansion pod failed", always, to(stepRecordFailure)},
}

// expanding reports whether an expansion pod is recorded.
func (o snapshot) expanding() bool {
	return o.volume.Status.Step == pavv1.StepExpanding && o.volume.Status.Pod != nil
}

// holds reports whether it is recorded that no node is to stage the volume.
func (o snapshot) holds() bool { return o.expansion() != nil && o.expansion().Offline }

// isToGrow reports whether the claim requests more than the volume has, and the definition says how it grows.
func (o snapshot) isToGrow() bool {
	return o.canGrow() && o.tooSmall() && o.provisioner != nil && o.provisioner.Spec.VolumeExpansion != nil
}

// growsOffline reports whether an expansion pod runs, and no node may have the volume staged meanwhile.
func (o snapshot) growsOffline() bool {
	return o.provisioner.Spec.VolumeExpansion.IsOffline() && o.provisioner.Spec.VolumeExpansion.PodTemplate != nil
}

func (o snapshot) expansion() *pavv1.VolumeExpansionRecord { return o.volume.Status.Expansion }

// isUnreportable reports whether the node of an expansion pod that has succeeded is gone, so that nobody reports what it left.
func (o snapshot) isUnreportable() bool {
	return o.nodeGone && !attempt.HasEndedWithin(o.now, o.pod(), attempt.ResultDelay)
}

// canGrow reports whether a claim is bound to the volume, and its request counts.
func (o snapshot) canGrow() bool {
	status := &o.volume.Status
	return o.user != nil && o.user.DeletionTimestamp == nil && !o.deleting() && status.Phase == pavv1.VolumeReady &&
		status.Capacity != nil && status.CreationPod == nil
}

// requested returns what the claim that is bound to the volume requests.
func (o snapshot) requested() *resource.Quantity {
	requested := o.user.Spec.Resources.Requests[corev1.ResourceStorage]
	return &requested
}

// tooSmall reports whether the claim requests more than the volume has.
func (o snapshot) tooSmall() bool { return o.requested().Cmp(*o.volume.Status.Capacity) > 0 }

// pvBehind reports whether the PersistentVolume has less than the recorded capacity.
func (o snapshot) pvBehind() bool {
	has := o.pv.Spec.Capacity[corev1.ResourceStorage]
	return o.volume.Status.Capacity.Cmp(has) > 0
}

// claimBehind reports whether the status of the claim has to be written.
func (o snapshot) claimBehind() bool { return o.user != nil && sizeOf(o) != sizeShown(o.user) }

// saysThatItGrows reports whether an expansion is recorded, or a condition says why there is none.
func (o snapshot) saysThatItGrows() bool {
	return o.expansion() != nil || meta.FindStatusCondition(o.volume.Status.Conditions, pavv1.VolumeExpanded) != nil
}

// isUncertain reports whether the last expansion pod may have done anything, so that the target must not change. A target that
// the volume has by now, as in a record that was restored, says nothing.
//
// A call of ControllerExpandVolume whose outcome is not known is repeated with the same size (external-resizer, KEP-1790).
func (o snapshot) isUncertain() bool {
	e, has := o.expansion(), o.volume.Status.Capacity
	return e != nil && e.Uncertain && (has == nil || e.Target.Cmp(*has) > 0)
}

// target returns the capacity that the next expansion pod is to reach.
func (o snapshot) target() resource.Quantity {
	if o.isUncertain() {
		return o.expansion().Target
	}
	return *o.requested()
}

// wantsPod reports whether a recorded expansion pod that was not created is still to be: the volume is in use, and is to have the
// recorded capacity.
func (o snapshot) wantsPod() bool {
	pv, e := o.ownPV(), o.expansion()
	if pv == nil || o.released(pv) || e == nil || !o.canGrow() || o.provisioner == nil || o.provisioner.Spec.VolumeExpansion == nil {
		return false
	}
	return o.isUncertain() || e.Target.Cmp(*o.requested()) == 0
}

// expansionBackoff returns how long the next expansion pod has to wait. It does not wait if the definition has changed since the
// last one. Another request does not wait for what was infeasible.
func expansionBackoff(o snapshot) time.Duration {
	e := o.expansion()
	if e == nil || e.Failure == nil || o.volume.Status.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	if target := o.target(); e.Failure.Reason == pavv1.FailureInfeasible && target.Cmp(e.Target) != 0 {
		return o.retryIn(e.Attempt, asOfAnotherRequest(e.Failure))
	}
	return o.retryIn(e.Attempt, e.Failure)
}

func waitingToGrow(reason, message string) decision {
	return waiting(pavv1.VolumeExpanded, reason, message, true)
}
