package volume

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// creation returns the creation pod that has created /pav/ready and may still run.
func (o observation) creation() attempt.Attempt {
	return attempt.Attempt{Now: o.now, Ref: o.volume.Status.CreationPod, Pods: o.pods}
}

// creationEnded reports whether such a pod has ended, or is gone.
func (o observation) creationEnded() bool {
	switch o.creation().Progress() {
	case attempt.Succeeded, attempt.Failed, attempt.Vanished:
		return true
	default:
		return false
	}
}

// isCreationPod reports whether a pod is the one that has created /pav/ready and may still run.
func (o observation) isCreationPod(pod *corev1.Pod) bool {
	ref := o.volume.Status.CreationPod
	return ref != nil && ref.UID == pod.UID
}

// endsCreation reports whether a creation pod that goes on after /pav/ready is stopped at once: its volume is not created
// after all, or is no claim's any more.
func (o observation) endsCreation() bool {
	if o.volume.Status.Phase == pavv1.VolumeReady {
		return false
	}
	return !o.pending() || o.volume.Status.Handle == "" || o.reverting() || o.unwanted()
}

// goesOn returns the change that records a creation pod which has created /pav/ready and may still run.
func (o observation) goesOn(pod *corev1.Pod) change {
	if o.progress() != attempt.Ready {
		return nothing
	}
	return func(status *pavv1.PavVolumeStatus) {
		status.CreationPod = &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Due: new(metav1.NewTime(o.now))}
	}
}

// lingerLimit is how long a creation pod may go on after /pav/ready: what it does then must not matter, and no node can
// stage the volume meanwhile.
const lingerLimit = time.Minute

// decideLinger decides about a creation pod that goes on, if there is nothing else to do.
func decideLinger(o observation, d decision) decision {
	a := o.creation()
	switch a.Progress() {
	case attempt.Running:
		left := lingerLimit
		if a.Ref.Due != nil {
			left = min(lingerLimit-o.now.Sub(a.Ref.Due.Time), lingerLimit) // the clock may be behind
		}
		if left <= 0 {
			return decision{Step: stepStopCreation, Rule: "the creation pod goes on for long after /pav/ready"}
		}
		if d.After == 0 || left < d.After {
			d.After = left
		}
	case attempt.Stopping:
		v := a.DecideStopping()
		if v.Message != "" {
			d = rule.Tell(v.Message)
		}
		d.After, d.Rule = v.After, "the creation pod, which has created /pav/ready, is being deleted"
	default: // it has ended
	}
	return d
}

// stopCreation stops a creation pod that goes on for long after /pav/ready.
func (r *Reconciler) stopCreation(ctx context.Context, o observation, _ decision) error {
	pod := o.creation().Pod()
	if err := r.Runner.Stop(ctx, pod); err != nil {
		return err
	}
	r.tellClaimOnce(o.volume, fmt.Sprintf("PavProvisioner %q: creation: pod %s/%s is stopped, as it has gone on for more than %s after it had created /pav/ready; no pod can use the volume before its end",
		o.volume.Spec.Provisioner, pod.Namespace, pod.Name, lingerLimit))
	return nil
}

// slot returns the pod that has the volume's slot, or waits for it.
func (o observation) slot() attempt.Attempt {
	if o.volume.Status.CreationPod != nil {
		return o.creation()
	}
	return o.attempt()
}

// endCreation records that the creation pod has ended.
func (r *Reconciler) endCreation(ctx context.Context, o observation, _ decision) error {
	a := o.creation()
	pod := a.Pod()
	if pod == nil && !o.endsCreation() {
		r.tellClaimOnce(o.volume, fmt.Sprintf("PavProvisioner %q: creation: pod %s/%s was removed by force after it had created /pav/ready; if its node is not gone, its containers may still run, beside the next pod of the volume",
			o.volume.Spec.Provisioner, a.Ref.Namespace, a.Ref.Name))
	}
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) { status.CreationPod = nil }); err != nil {
		return err
	}
	r.reportCreationFailure(o, pod)
	return nil
}

// reportCreationFailure reports a creation pod that has failed after it had created /pav/ready. Its volume is complete.
func (r *Reconciler) reportCreationFailure(o observation, pod *corev1.Pod) {
	if pod == nil || pod.DeletionTimestamp != nil || workflow.Judge(pod) != workflow.Failed || o.endsCreation() {
		return
	}
	r.tellClaim(o.volume, corev1.EventTypeWarning, protocol.Provisioning, fmt.Sprintf("PavProvisioner %q: creation: the volume is kept, as this happened after /pav/ready was created: %s",
		o.volume.Spec.Provisioner, workflow.Failure(pavv1.WorkflowCreation, pod, "").Message))
}
