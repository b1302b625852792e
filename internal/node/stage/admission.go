package stage

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// created handles the answer to the creation of a validation or staging pod. First says that it is the first pod of
// its kind in the attempt.
func (t *task) created(ctx context.Context, kind string, err error, first bool) error {
	switch {
	case t.ahead && (errors.Is(err, workflow.ErrRefused) || errors.Is(err, workflow.ErrUnjudged)):
		// The API server may have added references, such as the pull secrets of an account.
		return t.leaveToCall(ctx, kind, err, first)
	case errors.Is(err, workflow.ErrRefused):
		return t.failWithoutPod(ctx, kind, err, first)
	case errors.Is(err, workflow.ErrUnjudged):
		return t.unjudged(ctx, kind, err, first)
	case errors.Is(err, workflow.ErrForeign):
		// Another object has the name. The next attempt has another name; the record of this pod stays, as a pod of
		// PaV may have had the name before.
		return t.update(ctx, func(status *pavv1.PavStageStatus) { status.Attempt++ })
	}
	return err
}

// leaveToCall leaves a pod that could not be created to kubelet's call, which reports why.
func (t *task) leaveToCall(ctx context.Context, kind string, reason error, first bool) error {
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) { forgetPod(status, kind, first) }); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrPending, reason)
}

// forgetPod removes the pod of a workflow from a status if it would have been the first of its kind: then there is nothing to
// revert.
func forgetPod(status *pavv1.PavStageStatus, kind string, first bool) {
	if first && kind == pavv1.WorkflowStaging {
		status.StagingPod = nil
	}
	if first && kind == pavv1.WorkflowValidation {
		status.ValidationPod = nil
	}
}

// unjudged reports that a pod cannot be created until the controller agent can check it, and ends the call; the next
// call tries again. If it would have been the first pod of its kind, there is nothing to revert.
func (t *task) unjudged(ctx context.Context, kind string, reason error, first bool) error {
	what, event := staging, "FailedMount"
	switch kind {
	case pavv1.WorkflowValidation:
		what = validating
	case pavv1.WorkflowUnstaging:
		what, event = unstaging, "FailedUnmount"
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		forgetPod(status, kind, first)
		t.setReady(t.stage, metav1.ConditionFalse, "PodNotAdmitted", observability.Clip(reason.Error(), observability.MaxCondition))
	}); err != nil {
		return err
	}
	// Kubelet asks again and again, and the reason may have a port or the like that changes each time.
	if due, _ := t.repeats.Due(t.stage.Name, what, t.now()); due {
		t.eventf(ctx, corev1.EventTypeWarning, event, "%s on node %s: provisioner %q: %v", what, t.node, t.stage.Spec.Provisioner, reason)
	}
	return fmt.Errorf("%w: provisioner %q: %s volume %q: %w", ErrPending, t.stage.Spec.Provisioner, what, t.stage.Spec.VolumeName, reason)
}
