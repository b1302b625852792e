package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observe"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// steps are the ways to take each step that is something to do.
var steps = map[step]func(*task, context.Context) error{
	stepYield:        (*task).yield,
	stepSweep:        (*task).sweep,
	stepRecord:       func(t *task, ctx context.Context) error { return t.record(ctx, 1) },
	stepReplace:      (*task).replace,
	stepRunStaging:   (*task).runStaging,
	stepAttach:       (*task).attach,
	stepConfirm:      (*task).confirm,
	stepFail:         (*task).fail,
	stepRevert:       (*task).revert,
	stepDetach:       (*task).detach,
	stepStop:         (*task).stop,
	stepRunUnstaging: (*task).runUnstaging,
	stepRetry:        (*task).retryUnstaging,
	stepClean:        (*task).clean,
	stepForget:       (*task).forget,
}

// yield ends the call where a PavStage that is on its way out is in the way of a new one.
func (t *task) yield(context.Context) error {
	return fmt.Errorf("%w: PavStage %q is being deleted, and is kept by finalizers %q", ErrBusy, t.stage.Name, t.stage.Finalizers)
}

// sweep removes what a PavStage that is gone has left on the node, so that nobody takes it for a new
// one's: for example, a volume whose node was given up, and came back.
func (t *task) sweep(ctx context.Context) error {
	shared, exclusive := t.names(t.volume)
	for _, name := range []string{shared, exclusive} {
		if err := t.dirs.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// replace makes room for a new attempt where the record of a failed one is.
func (t *task) replace(ctx context.Context) error {
	attempt := t.stage.Status.Attempt
	if err := t.client.Delete(ctx, t.stage, client.Preconditions{UID: &t.stage.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting PavStage %q of a failed attempt: %w", t.stage.Name, err)
	}
	return t.record(ctx, attempt+1)
}

// runStaging records the staging pod, then creates it.
func (t *task) runStaging(ctx context.Context) error {
	first := t.stage.Status.StagingPod == nil
	pod, err := t.buildStaging(ctx)
	if err == nil {
		err = t.runner.CheckNamespace(ctx, pod.Namespace)
	}
	if isDefinition(err) {
		return t.failWithoutPod(ctx, err, first)
	}
	if err != nil {
		return err
	}

	if first {
		// What a pod of an earlier stage has left, such as /pav/ready, must not be taken for this one's.
		if err := t.dirs.Remove(ctx, t.stage.Name); err != nil {
			return err
		}
	}
	if err := t.dirs.Prepare(ctx, t.stage.Name); err != nil {
		return err
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageStaging
		status.BootID = t.bootID
		status.StagingPod = &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name}
		setReady(t.stage, metav1.ConditionFalse, "Staging", fmt.Sprintf("pod %s/%s is staging the volume", pod.Namespace, pod.Name))
	}); err != nil {
		return err
	}
	err = t.runner.Create(ctx, pod)
	if errors.Is(err, workflow.ErrRefused) {
		return t.failWithoutPod(ctx, err, first)
	}
	return err
}

func (t *task) buildStaging(ctx context.Context) (*corev1.Pod, error) {
	provisioner, err := t.liveProvisioner(ctx)
	if err != nil {
		return nil, err
	}
	field := fieldOf(provisioner, "spec.volumeStaging.podTemplate")
	return t.build(ctx, pavv1.WorkflowStaging, field, provisioner.Spec.VolumeStaging.PodTemplate, t.stage.Status.Attempt)
}

// liveProvisioner returns the provisioner as the API server has it, after the PavStage was written: one
// that is let go now has not seen the PavStage, and nobody would call again to take that away.
func (t *task) liveProvisioner(ctx context.Context) (*pavv1.PavProvisioner, error) {
	provisioner := &pavv1.PavProvisioner{}
	err := t.client.Get(ctx, client.ObjectKey{Name: t.stage.Spec.Provisioner}, provisioner)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting PavProvisioner %q: %w", t.stage.Spec.Provisioner, err)
	}
	if err != nil || provisioner.DeletionTimestamp != nil && !slices.Contains(provisioner.Finalizers, pavv1.ProvisionerFinalizer) {
		return nil, refused("PavProvisioner %q does not exist", t.stage.Spec.Provisioner)
	}
	return provisioner, nil
}

// isDefinition says whether err is for the author of a definition to mend, so that trying again alone does not help.
func isDefinition(err error) bool {
	var templateError *template.Error
	return errors.As(err, &templateError) || errors.Is(err, workflow.ErrRefused) || errors.Is(err, ErrRefused)
}

// attach makes what the staging pod left at /pav/volume available to clients.
func (t *task) attach(ctx context.Context) error {
	err := t.dirs.Attach(ctx, t.stage.Name, t.stage.Spec.ReadOnly)
	if errors.Is(err, pavdir.ErrNoVolume) {
		return t.failPod(ctx, t.stagingPod, err.Error())
	}
	if err != nil {
		return err
	}
	return t.confirm(ctx)
}

func (t *task) confirm(ctx context.Context) error {
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageStaged
		setReady(t.stage, metav1.ConditionTrue, "Staged", "the volume is available on the node")
	}); err != nil {
		return err
	}
	// One that goes on running keeps its finalizer: unstaging must not take it for ended before its containers are.
	if state := workflow.Observe(t.stagingPod); state != workflow.Succeeded && state != workflow.Failed {
		return nil
	}
	return t.runner.Release(ctx, t.stagingPod)
}

// fail records the failure of the staging pod; from here on, what it did is reverted.
func (t *task) fail(ctx context.Context) error {
	return t.failPod(ctx, t.stagingPod, t.podError(ctx, t.stagingPod))
}

func (t *task) failPod(ctx context.Context, pod *corev1.Pod, words string) error {
	failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, Message: words, Time: metav1.Now()}
	if pod != nil {
		failure = workflow.Failure(pavv1.WorkflowStaging, pod, words)
	}
	return t.recordFailure(ctx, failure, false)
}

// failWithoutPod records that no staging pod could be made. If it would have been the first, nothing is
// to be reverted by an unstaging pod.
func (t *task) failWithoutPod(ctx context.Context, reason error, first bool) error {
	return t.recordFailure(ctx, &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, Message: reason.Error(), Time: metav1.Now()}, first)
}

func (t *task) recordFailure(ctx context.Context, failure *pavv1.WorkflowFailure, nothingRan bool) error {
	failure.Message = observe.Clip(failure.Message, maxMessage)
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageUnstaging
		status.StagingFailure = failure
		if nothingRan {
			status.StagingPod = nil
		}
		setReady(t.stage, metav1.ConditionFalse, "StagingFailed", failure.Message)
	}); err != nil {
		return err
	}
	t.eventf(corev1.EventTypeWarning, "FailedMount", "staging on node %s failed: provisioner %q: %s", t.node, t.stage.Spec.Provisioner, failure.Message)
	return nil
}

// podError returns what the pod, which has ended, wrote to /pav/error.
func (t *task) podError(ctx context.Context, pod *corev1.Pod) string {
	began := pod.CreationTimestamp
	if pod.Status.StartTime != nil {
		began = *pod.Status.StartTime // by the node's own clock
	}
	return t.dirs.PodError(ctx, t.stage.Name, began.Time)
}

// update changes the status, and fails if somebody else has changed the object since it was read.
func (t *task) update(ctx context.Context, change func(*pavv1.PavStageStatus)) error {
	change(&t.stage.Status)
	if err := t.client.Status().Update(ctx, t.stage); err != nil {
		return fmt.Errorf("writing the status of PavStage %q: %w", t.stage.Name, err)
	}
	return nil
}

func setReady(stage *pavv1.PavStage, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&stage.Status.Conditions, metav1.Condition{
		Type: pavv1.StageReady, Status: status, Reason: reason, Message: message, ObservedGeneration: stage.Generation,
	})
}

// eventf tells the claim's user and whoever looks at the PavStage.
func (t *task) eventf(kind, reason, format string, args ...any) {
	claim := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim",
		Namespace: t.stage.Spec.ClaimRef.Namespace, Name: t.stage.Spec.ClaimRef.Name, UID: t.stage.Spec.ClaimRef.UID,
	}
	note := observe.Clip(fmt.Sprintf(format, args...), observe.MaxNote)
	t.events.Event(claim, kind, reason, note)
	t.events.Event(t.stage, kind, reason, note)
}

// maxMessage keeps conditions well below the 32 KiB that the API server takes.
const maxMessage = 4 << 10
