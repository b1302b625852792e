package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// runDelay is how long a pod may run before that is reported.
	runDelay = 30 * time.Second

	// needPeriod is how often a call looks for pods that need the volume, while a pod that was reported has not ended.
	needPeriod = 30 * time.Second
)

// slowness returns what is to be reported of a pod that runs for long, or "", and in what time it is to be reported if the
// pod still runs then; 0 means never.
func (t *task) slowness(o *observation, what string, pod *corev1.Pod) (cause string, in time.Duration) {
	if !workflow.Started(pod) || !t.isAwaited(o, what, pod) {
		return "", 0
	}
	if left := runDelay - t.now().Sub(workflow.StartOf(pod)); left > 0 {
		return "", min(left, runDelay)
	}
	claim := &t.stage.Spec.ClaimRef
	return fmt.Sprintf("%s after %s; see kubectl logs -n %s %s --all-containers, or stop it with kubectl pav retry pvc/%s -n %s",
		t.unfinished(what, pod), runDelay, pod.Namespace, pod.Name, claim.Name, claim.Namespace), 0
}

// hasReportedSlow reports whether the condition of the stage says that its pod has run for long, perhaps by an agent before
// this one.
func (t *task) hasReportedSlow() bool {
	ready := meta.FindStatusCondition(t.stage.Status.Conditions, pavv1.StageReady)
	return ready != nil && ready.Reason == pavv1.ReasonPodRunsLong && ready.Message == observability.Clip(t.cause, observability.MaxCondition)
}

// isStoppable reports whether a retry stops the pod of a stage: the condition says that it runs for long or cannot start.
func isStoppable(status *pavv1.PavStageStatus) bool {
	return pavv1.StoppedByRetry(status.Conditions, pavv1.StageReady) != nil
}

// isAwaited reports whether the work on the stage waits for what a running pod does. The pod that serves a staged volume runs
// as long as the volume is staged, and one that is being stopped has its grace period.
func (t *task) isAwaited(o *observation, what string, pod *corev1.Pod) bool {
	switch what {
	case staging:
		return o.phase == pavv1.StageStaging && !o.attached
	case unstaging:
		return pod == t.unstagingPod || pod == t.expansionPod
	default:
		return true
	}
}

// observeReported gathers what is to be done about a pod that runs for long or cannot start, and was reported.
func (t *task) observeReported(ctx context.Context, o *observation) error {
	if !o.reported {
		return nil
	}
	o.stopRequested = !t.retryRequested(t.stage).IsZero()
	if what, _ := t.work(); what == unstaging {
		return nil
	}
	if since := t.now().Sub(t.looked); since < needPeriod {
		o.lookIn = needPeriod - since
		return nil
	}
	pods, err := t.LivePods(ctx)
	if err != nil {
		return err
	}
	t.looked, o.lookIn = t.now(), needPeriod
	o.unneeded = !slices.ContainsFunc(pods, t.isNeededBy)
	return nil
}

// isNeededBy reports whether a pod of the node needs the volume.
func (t *task) isNeededBy(pod corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	spec := &t.stage.Spec
	if spec.Client != nil {
		return pod.UID == spec.Client.UID
	}
	return pod.Namespace == spec.ClaimRef.Namespace && protocol.Uses(&pod, spec.ClaimRef.Name)
}

// leave ends the call, as no pod needs the volume any more: kubelet unstages it next.
func (t *task) leave(context.Context) error {
	what, pod := t.work()
	return fmt.Errorf("%w: provisioner %q: %s volume %q: %s, and no pod on the node needs the volume any more",
		ErrPending, t.Driver, what, t.stage.Spec.VolumeName, t.unfinished(what, pod))
}

// failStopped records that the validation or staging pod is stopped, as a retry was requested. From here on, staging is reverted.
func (t *task) failStopped(ctx context.Context) error {
	what, pod := t.work()
	kind := pavv1.WorkflowStaging
	if what == validating {
		kind = pavv1.WorkflowValidation
	}
	failure := workflow.Failure(kind, pod, "")
	failure.Reason = pavv1.FailurePodStopped
	failure.Message = fmt.Sprintf("pod %s/%s was stopped, as a retry was requested", pod.Namespace, pod.Name)
	return t.recordFailure(ctx, failure, false)
}
