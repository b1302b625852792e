package volume

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// step is the next thing to do for a volume: at most one object is changed by it.
type step string

const (
	// stepDone: nothing is to be done until something changes.
	stepDone step = "Done"

	// stepWait: the same, but the decision has a condition that says what for.
	stepWait step = "Wait"

	// stepFail: the attempt has failed; it is reported and repeated with backoff.
	stepFail step = "Fail"

	// stepAlign: make reclaim policy and finalizers of PavVolume and PersistentVolume agree.
	stepAlign step = "Align"

	// stepProvision: check the request, work out handle and capacity, and record them.
	stepProvision step = "Provision"

	// stepWritePV: write the PersistentVolume.
	stepWritePV step = "WritePV"

	// stepMarkReady: record that the PersistentVolume exists.
	stepMarkReady step = "MarkReady"

	// stepMarkDeleting: record that the storage will be deleted, before any of it is.
	stepMarkDeleting step = "MarkDeleting"

	// stepDeletePV: the storage is gone; delete the PersistentVolume.
	stepDeletePV step = "DeletePV"

	// stepRetain: record that the storage is now the administrator's.
	stepRetain step = "Retain"

	// stepForget: nothing of the volume is left, or nothing was ever made; delete the PavVolume.
	stepForget step = "Forget"
)

// decision is a step, and what to tell about it: for Wait and Fail.
type decision struct {
	step step

	// reason and message are those of the condition; the message is also the event's.
	reason, message string

	// warning says that somebody has to do something about it.
	warning bool
}

// decide is pure: it does no I/O and reads no clock.
func decide(o observed) decision {
	pv := o.ownPV()
	switch {
	case pv != nil:
		return decideWithPV(o, pv)
	case o.pending():
		return decidePending(o)
	default:
		return decideWithoutPV(o)
	}
}

// decidePending decides about a volume in the making.
func decidePending(o observed) decision {
	// Nothing was created yet that would have to be reverted, so that a volume which nobody wants,
	// or nobody can make, just goes. The claim's own controller tells its user why.
	if o.deleting() || o.claim == claimGone || o.claim == claimElsewhere {
		return decision{step: stepForget}
	}
	if o.provisioner == nil || o.provisioner.DeletionTimestamp != nil {
		return decision{step: stepForget}
	}
	if o.pv != nil {
		return failed("Conflict", fmt.Sprintf("PersistentVolume %q exists and is not this claim's; delete it", o.pv.Name))
	}
	if message := refuseDefinition(o.provisioner); message != "" {
		return failed("Refused", message)
	}
	switch {
	case o.volume.Status.Handle == "":
		return decision{step: stepProvision}
	case !o.registered:
		return decision{step: stepDone} // the CSIDriver comes first, and brings the next pass
	default:
		return decision{step: stepWritePV}
	}
}

// decideWithPV decides about a volume whose PersistentVolume exists.
func decideWithPV(o observed, pv *corev1.PersistentVolume) decision {
	if alignment(o) != (changes{}) {
		return decision{step: stepAlign}
	}
	if !o.released(pv) {
		return decideInUse(o, pv)
	}
	if policyOf(pv) == corev1.PersistentVolumeReclaimDelete {
		return decideDeletion(o)
	}
	if o.volume.Status.Phase != pavv1.VolumeRetained {
		return decision{step: stepRetain}
	}
	return decision{step: stepDone}
}

// decideInUse decides about a volume that somebody has, or can have.
func decideInUse(o observed, pv *corev1.PersistentVolume) decision {
	phase := o.volume.Status.Phase
	// A retained volume that waits for a new claim is still the administrator's.
	if phase != pavv1.VolumeReady && (phase != pavv1.VolumeRetained || pv.Status.Phase == corev1.VolumeBound) {
		return decision{step: stepMarkReady}
	}
	if o.deleting() && phase == pavv1.VolumeReady {
		return waiting("InUse", fmt.Sprintf("PersistentVolume %q is still in use: delete its claim", pv.Name), true)
	}
	return decision{step: stepDone}
}

// decideWithoutPV decides about a volume whose PersistentVolume is gone.
func decideWithoutPV(o observed) decision {
	if alignment(o) != (changes{}) {
		return decision{step: stepAlign}
	}
	retained := o.volume.Status.Phase == pavv1.VolumeRetained
	if o.volume.Spec.ReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		if retained {
			return decision{step: stepDone}
		}
		return decision{step: stepRetain}
	}
	// A retained volume is deleted only by an administrator who changes its policy and deletes it.
	if retained && !o.deleting() {
		return decision{step: stepDone}
	}
	if o.claim == claimBound {
		return waiting("Lost", fmt.Sprintf("PersistentVolume %q was removed by force while its claim is bound to it; the storage is deleted when the claim is", o.volume.Name), true)
	}
	return decideDeletion(o)
}

// decideDeletion decides about a volume whose storage is to be deleted.
func decideDeletion(o observed) decision {
	if o.volume.Status.Phase != pavv1.VolumeDeleting {
		return decision{step: stepMarkDeleting}
	}
	if len(o.holders) > 0 {
		return waiting("StillStaged", "waiting for the volume to be unstaged on "+nodes(o.holders), false)
	}
	if o.provisioner == nil {
		return waiting("NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, so that PaV cannot know how to delete the volume: "+
			"create it again, or set the reclaim policy to Retain and delete the storage by hand", o.volume.Spec.Provisioner), true)
	}
	if d := o.provisioner.Spec.VolumeDeletion; d != nil && d.PodTemplate != nil {
		return waiting("Unsupported", unsupported(o.provisioner, "spec.volumeDeletion.podTemplate", "deletion"), true)
	}
	if o.ownPV() != nil {
		return decision{step: stepDeletePV}
	}
	return decision{step: stepForget}
}

// refuseDefinition returns why a provisioner makes no volumes, or "".
func refuseDefinition(p *pavv1.PavProvisioner) string {
	if c := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerAccepted); c != nil && c.Status == metav1.ConditionFalse {
		return fmt.Sprintf("PavProvisioner %q cannot be used: %s", p.Name, c.Message)
	}
	switch {
	case p.Spec.VolumeValidation != nil && p.Spec.VolumeValidation.PodTemplate != nil:
		return unsupported(p, "spec.volumeValidation.podTemplate", "validation")
	case p.Spec.VolumeCreation != nil && p.Spec.VolumeCreation.PodTemplate != nil:
		return unsupported(p, "spec.volumeCreation.podTemplate", "creation")
	case p.Spec.VolumeDeletion != nil && p.Spec.VolumeDeletion.PodTemplate != nil:
		return unsupported(p, "spec.volumeDeletion.podTemplate", "deletion")
	}
	return ""
}

func unsupported(p *pavv1.PavProvisioner, field, pod string) string {
	return fmt.Sprintf("PavProvisioner %q: %s: this version of PaV does not run %s pods yet", p.Name, field, pod)
}

func failed(reason, message string) decision {
	return decision{step: stepFail, reason: reason, message: bounded(message), warning: true}
}

func waiting(reason, message string, warning bool) decision {
	return decision{step: stepWait, reason: reason, message: bounded(message), warning: warning}
}

// bounded cuts a message, which may quote a definition or the API server, to what an event can have.
func bounded(message string) string {
	const most = 1024
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most-len("…")], "") + "…"
}

// nodes names at most three nodes.
func nodes(names []string) string {
	const most = 3
	text := "node "
	if len(names) > 1 {
		text = "nodes "
	}
	if len(names) <= most {
		return text + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s%s and %d more", text, strings.Join(names[:most], ", "), len(names)-most)
}
