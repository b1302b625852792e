package volume

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// expansionTable is for a volume in use without a recorded pod. While it decides on nothing, modificationTable decides.
var expansionTable = table{
	// What it may have reached is the attempted capacity.
	{Name: "a former claim asked for the expansion", When: func(o observation) bool { return o.expansion() != nil && o.isOfFormer(&o.expansion().ChangeAttempt) }, Then: to(stepEndExpansion)},
	{Name: "nodes need not leave the volume alone any more", When: func(o observation) bool { return o.holds() && !o.isUncertain() && !o.isToGrow() }, Then: to(stepEndExpansion)},
	{Name: "no claim can let the volume grow", When: func(o observation) bool { return !o.canGrow() }, Then: to(stepDone)},
	{Name: "the claim does not show that the PersistentVolume is to have more", When: func(o observation) bool { return o.pvTooSmall() && o.claimBehind() }, Then: to(stepShowClaim)},
	{Name: "the PersistentVolume does not have the capacity or the attributes of the volume", When: observation.pvBehind, Then: to(stepUpdatePV)},
	{Name: "the volume need not grow any more", When: func(o observation) bool { return !o.tooSmall() && o.saysThatItGrows() && !o.isUncertain() }, Then: to(stepEndExpansion)},
	{Name: "the claim does not show the size or the attributes of the volume", When: observation.claimBehind, Then: to(stepShowClaim)},
	{Name: "the nodes do not try again yet", When: func(o observation) bool { return !o.tooSmall() && !o.isUncertain() && o.isInfeasibleOnNode() }, Then: again(nodeBackoff)},
	{Name: "the volume is as large as its claim requests", When: func(o observation) bool { return !o.tooSmall() && !o.isUncertain() }, Then: to(stepDone)},
	{Name: "there is no provisioner to expand with", When: func(o observation) bool { return o.provisioner == nil }, Then: func(o observation) decision {
		return waitingToGrow(o, "NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, and only it defines how to expand the volume: create it again", o.volume.Spec.Provisioner))
	}},
	{Name: "the volumes of the provisioner cannot grow", When: func(o observation) bool { return o.provisioner.Spec.VolumeExpansion == nil }, Then: func(o observation) decision {
		return waitingToGrow(o, "Unsupported", fmt.Sprintf("PavProvisioner %q has no spec.volumeExpansion, so that its volumes cannot grow: the volume has %s, and its claim requests %s",
			o.volume.Spec.Provisioner, o.volume.Status.Capacity, o.requested()))
	}},
	{Name: "the next expansion pod is not due", When: func(o observation) bool { return expansionBackoff(o) > 0 }, Then: again(expansionBackoff)},
	{Name: "no node is to stage the volume until it has grown", When: func(o observation) bool { return o.growsOffline() && !o.holds() }, Then: to(stepHold)},
	{Name: "nodes still have the volume staged", When: func(o observation) bool { return o.growsOffline() && len(reconcile.StagedOn(o.others)) > 0 }, Then: func(o observation) decision {
		return rule.Waiting(pavv1.VolumeExpanded, "Staged", fmt.Sprintf("PavProvisioner %q expands volumes only while no node has them staged: the volume is staged on %s; it grows when no pod there uses it any more, and no other pod gets it before that",
			o.volume.Spec.Provisioner, strings.Join(reconcile.StagedOn(o.others), ", ")), false)
	}},
	{Name: "the volume is to grow", When: always, Then: to(stepExpand)},
}

// holds reports whether it is recorded that no node is to stage the volume.
func (o observation) holds() bool { return o.expansion() != nil && o.expansion().Offline }

// isToGrow reports whether the claim requests more than the volume has, and the definition says how it grows.
func (o observation) isToGrow() bool {
	return o.canGrow() && o.tooSmall() && o.provisioner != nil && o.provisioner.Spec.VolumeExpansion != nil
}

// growsOffline reports whether an expansion pod runs, and no node may have the volume staged meanwhile.
func (o observation) growsOffline() bool {
	return o.provisioner.Spec.VolumeExpansion.IsOffline() && o.provisioner.Spec.VolumeExpansion.PodTemplate != nil
}

func (o observation) expansion() *pavv1.VolumeExpansionRecord { return o.volume.Status.Expansion }

// canGrow reports whether a claim is bound to the volume, and its request counts.
func (o observation) canGrow() bool { return o.canChange() && o.volume.Status.Capacity != nil }

// requested returns what the claim that is bound to the volume requests.
func (o observation) requested() *resource.Quantity {
	requested := o.user.Spec.Resources.Requests[corev1.ResourceStorage]
	return &requested
}

// tooSmall reports whether the claim requests more than the volume has.
func (o observation) tooSmall() bool { return o.requested().Cmp(*o.volume.Status.Capacity) > 0 }

// pvBehind reports whether the PersistentVolume has less than the recorded capacity, or names other attributes than the recorded ones.
func (o observation) pvBehind() bool { return o.pvTooSmall() || o.pvLacksAttributes() }

func (o observation) pvTooSmall() bool {
	has := o.pv.Spec.Capacity[corev1.ResourceStorage]
	return o.volume.Status.Capacity.Cmp(has) > 0
}

// saysThatItGrows reports whether an expansion is recorded, or a condition says why there is none. One about the claim stays until that
// has been written.
func (o observation) saysThatItGrows() bool {
	c := meta.FindStatusCondition(o.volume.Status.Conditions, pavv1.VolumeExpanded)
	return o.expansion() != nil || c != nil && (c.Reason != reasonUnshown || !o.claimBehind())
}

// isUncertain reports whether the last expansion pod may have done anything, so that the target must not change. A target that
// the volume has by now, as in a record that was restored, says nothing, nor does that of a former claim.
//
// A call of ControllerExpandVolume whose outcome is not known is repeated with the same size (external-resizer, KEP-1790).
func (o observation) isUncertain() bool {
	e, has := o.expansion(), o.volume.Status.Capacity
	return e != nil && e.Uncertain && !o.isOfFormer(&e.ChangeAttempt) && (has == nil || e.Target.Cmp(*has) > 0)
}

// target returns the capacity that the next expansion pod is to reach.
func (o observation) target() resource.Quantity {
	if o.isUncertain() {
		return o.expansion().Target
	}
	return *o.requested()
}

// wantsExpansionPod reports whether a recorded expansion pod that was not created is still to be: the volume is to have the recorded
// capacity, and nodes leave it alone if the definition wants that by now.
func (o observation) wantsExpansionPod() bool {
	e := o.expansion()
	if e == nil || o.isOfFormer(&e.ChangeAttempt) || !o.canGrow() || o.provisioner == nil || o.provisioner.Spec.VolumeExpansion == nil {
		return false
	}
	if o.growsOffline() && !e.Offline {
		return false
	}
	return o.isUncertain() || e.Target.Cmp(*o.requested()) == 0
}

// expansionBackoff returns how long the next expansion pod has to wait. It does not wait if the definition has changed since the
// last one.
func expansionBackoff(o observation) time.Duration {
	e := o.expansion()
	if e == nil || e.Failure == nil || o.volume.Status.ProvisionerGeneration != o.provisioner.Generation {
		return 0
	}
	target := o.target()
	return o.changeBackoff(&e.ChangeAttempt, target.Cmp(e.Target) != 0)
}

// untilGrown is said of a volume that no pod can use, as the next attempt to expand it has to come first.
const untilGrown = "no node stages the volume until it has grown, as it is not known what the last expansion pod has done to it"

func waitingToGrow(o observation, reason, message string) decision {
	if o.holds() {
		message += fmt.Sprintf("; %s: give PavProvisioner %q a spec.volumeExpansion that completes this", untilGrown, o.volume.Spec.Provisioner)
	}
	return rule.Waiting(pavv1.VolumeExpanded, reason, message, true)
}
