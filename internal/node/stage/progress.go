package stage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// pending describes what a call that has run out of time has waited for.
func (t *task) pending(ctx context.Context, err error) error {
	if t.stage == nil {
		return fmt.Errorf("%w: provisioner %q: %w%s", ErrPending, t.Driver, err, t.users(ctx))
	}
	what, pod := t.work()
	text := fmt.Sprintf("provisioner %q: %s volume %q", t.Driver, what, t.stage.Spec.VolumeName)
	failure := t.lastFailure()
	if failure != nil {
		text += ": another attempt follows; the last one: " + failure.Message
	}
	switch users := t.users(ctx); {
	case users != "":
		text += users
	case t.full != "":
		return fmt.Errorf("%w: %s: %s", ErrFull, text, t.full)
	case failure != nil, pod == nil:
	case workflow.Waiting(pod) != "":
		text += ": " + workflow.Waiting(pod)
	default:
		text += ": " + t.unfinished(what, pod)
	}
	return fmt.Errorf("%w: %s", ErrPending, text)
}

// unfinished says that a pod has not completed.
func (t *task) unfinished(what string, pod *corev1.Pod) string {
	text := fmt.Sprintf("pod %s/%s has not completed", pod.Namespace, pod.Name)
	if pod == t.stagingPod && what == staging {
		text += " and not created /pav/ready"
	}
	return text
}

// Words for the work in progress.
const (
	validating = "validating"
	staging    = "staging"
	unstaging  = "unstaging"
	expanding  = "expanding"
)

// work returns the work in progress, and the pod that does it, if any.
func (t *task) work() (what string, pod *corev1.Pod) {
	switch {
	case t.stage.Status.Phase == pavv1.StageUnstaging && t.expansionPod != nil:
		return unstaging, t.expansionPod
	case t.newCapacity > 0:
		return expanding, t.expansionPod
	case t.stage.Status.Phase == pavv1.StageUnstaging && t.unstagingPod != nil:
		return unstaging, t.unstagingPod
	case t.stage.Status.Phase == pavv1.StageUnstaging && t.stagingPod != nil:
		return unstaging, t.stagingPod
	case t.stage.Status.Phase == pavv1.StageUnstaging:
		return unstaging, t.validationPod
	case t.stage.Status.Phase == pavv1.StageValidating:
		return validating, t.validationPod
	}
	return staging, t.stagingPod
}

// lastFailure returns why the last attempt at the work in progress failed, if one did.
func (t *task) lastFailure() *pavv1.WorkflowFailure {
	status := &t.stage.Status
	if t.newCapacity > 0 {
		return nil // Each call makes one attempt.
	}
	if status.Phase != pavv1.StageUnstaging && status.Restaging {
		return status.StagingFailure
	}
	return status.UnstagingFailure
}
