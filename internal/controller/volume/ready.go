package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// creation returns the creation pod that has created /pav/ready and may still run.
func (o snapshot) creation() attempt.Attempt {
	return attempt.Attempt{Now: o.now, Ref: o.volume.Status.CreationPod, Pods: o.pods}
}

// creationEnded reports whether such a pod has ended, or is gone.
func (o snapshot) creationEnded() bool {
	switch o.creation().Progress() {
	case attempt.Succeeded, attempt.Failed, attempt.Vanished:
		return true
	default:
		return false
	}
}

// isCreationPod reports whether a pod is the one that has created /pav/ready and may still run.
func (o snapshot) isCreationPod(pod *corev1.Pod) bool {
	ref := o.volume.Status.CreationPod
	return ref != nil && ref.UID == pod.UID
}

// endsCreation reports whether a creation pod that goes on after /pav/ready is stopped: its volume is not created after
// all, or is deleted.
func (o snapshot) endsCreation() bool {
	switch o.volume.Status.Phase {
	case pavv1.VolumeReady:
		return false
	case pavv1.VolumeRetained:
		return o.deleting()
	default:
		return !o.pending() || o.volume.Status.Handle == "" || o.reverting() || o.unwanted()
	}
}

// slot returns the pod that has the volume's slot, or waits for it.
func (o snapshot) slot() attempt.Attempt {
	if o.volume.Status.CreationPod != nil {
		return o.creation()
	}
	return o.attempt()
}

// endCreation records that the creation pod has ended.
func (r *Reconciler) endCreation(ctx context.Context, o snapshot, _ decision) error {
	pod := o.creation().Pod()
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) { status.CreationPod = nil }); err != nil {
		return err
	}
	r.reportCreationFailure(o, pod)
	return nil
}

// reportCreationFailure reports a creation pod that has failed after it had created /pav/ready. Its volume is complete.
func (r *Reconciler) reportCreationFailure(o snapshot, pod *corev1.Pod) {
	if pod == nil || pod.DeletionTimestamp != nil || workflow.Judge(pod) != workflow.Failed {
		return
	}
	r.tellClaim(o.volume, corev1.EventTypeWarning, protocol.Provisioning, fmt.Sprintf("PavProvisioner %q: creation: the volume is kept, as this happened after /pav/ready was created: %s",
		o.volume.Spec.Provisioner, workflow.Failure(pavv1.WorkflowCreation, pod, "").Message))
}
