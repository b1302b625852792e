package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// revert begins to unstage. A volume that was being restaged is not given to any pod any more.
func (t *task) revert(ctx context.Context) error {
	return t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageUnstaging
		t.noteSeen(status)
		if status.Restaging {
			status.Restaging, status.StagingFailure = false, nil
		}
		t.setReady(t.stage, metav1.ConditionFalse, "Unstaging", "the volume is being unstaged")
	})
}

// detach unmounts the volume for new clients.
func (t *task) detach(ctx context.Context) error {
	t.settling.forget(t.attached)
	return t.dirs.Detach(ctx, t.attached)
}

// stop deletes the validation or staging pod.
func (t *task) stop(ctx context.Context) error {
	for _, pod := range []*corev1.Pod{t.validationPod, t.stagingPod} {
		if workflow.Observe(pod) != workflow.Running {
			continue
		}
		if err := t.runner.Stop(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// runUnstaging records the unstaging pod, then creates it. The template is the current one: a mistake in it can be
// fixed while volumes are staged.
func (t *task) runUnstaging(ctx context.Context) error {
	provisioner, err := t.catalogue.Provisioner(ctx, t.stage.Spec.Provisioner)
	if err != nil {
		return err
	}
	if provisioner == nil || provisioner.Spec.VolumeUnstaging == nil || provisioner.Spec.VolumeUnstaging.PodTemplate == nil {
		return fmt.Errorf("unstaging volume %q: PavProvisioner %q has no unstaging pod any more", t.stage.Spec.VolumeName, t.stage.Spec.Provisioner)
	}

	attempt := max(t.stage.Status.UnstagingAttempt, 1)
	pod, err := t.buildUnstaging(ctx, provisioner, attempt)
	if err == nil {
		err = t.runner.CheckNamespace(ctx, pod.Namespace)
	}
	if err == nil {
		err = t.createUnstaging(ctx, pod, attempt)
	}
	switch {
	case errors.Is(err, workflow.ErrUnjudged):
		return t.unjudged(ctx, pavv1.WorkflowUnstaging, err, false)
	case errors.Is(err, workflow.ErrForeign):
		return t.update(ctx, func(status *pavv1.PavStageStatus) { status.UnstagingAttempt = attempt + 1 })
	case isDefinition(err) && t.neverAdmitted():
		return t.skipUnstaging(ctx)
	case isDefinition(err):
		return t.unstagingFailed(ctx, attempt, workflow.FailureWithoutPod(pavv1.WorkflowUnstaging, err))
	default:
		return err
	}
}

// skipUnstaging reports that there is nothing to unstage.
func (t *task) skipUnstaging(ctx context.Context) error {
	pod := t.stage.Status.StagingPod
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) { status.StagingPod, status.UnstagingPod = nil, nil }); err != nil {
		return err
	}
	t.eventf(ctx, corev1.EventTypeNormal, "NothingStaged", "no pod unstages the volume on node %s: the staging pod %s/%s was never created", t.node, pod.Namespace, pod.Name)
	return nil
}

// neverAdmitted reports whether the recorded staging pod was never created, so that there is nothing to unstage. The
// answer to its creation was lost, and the clients, without which no pod of the stage is admitted, have gone since.
// The annotation is looked for in the answer to a write after the phase became Unstaging, since the webhook admits no
// staging pod of the stage from then on. If the pod was seen, Judged is false.
func (t *task) neverAdmitted() bool {
	pod := t.stage.Status.StagingPod
	return pod != nil && pod.Judged && t.stagingPod == nil && t.stage.Annotations[pavv1.AdmittedAnnotation] == ""
}

// noteSeen records that the staging pod was created.
func (t *task) noteSeen(status *pavv1.PavStageStatus) {
	if t.stagingPod != nil && status.StagingPod != nil {
		status.StagingPod.Judged = false
	}
}

func (t *task) buildUnstaging(ctx context.Context, provisioner *pavv1.PavProvisioner, attempt int32) (*corev1.Pod, error) {
	objects, _, err := t.objects(ctx)
	if err != nil {
		return nil, err
	}
	pod, err := t.definition(provisioner, objects.Volume).Unstaging(ctx, t.stage, objects, attempt)
	return pod, refusal(err)
}

func (t *task) createUnstaging(ctx context.Context, pod *corev1.Pod, attempt int32) error {
	if err := t.dirs.Prepare(ctx, t.stage.Name); err != nil {
		return err
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.UnstagingAttempt = attempt
		t.handleRetry(status)
		status.UnstagingPod = &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name}
		t.setReady(t.stage, metav1.ConditionFalse, "Unstaging", fmt.Sprintf("pod %s/%s is unstaging the volume", pod.Namespace, pod.Name))
	}); err != nil {
		return err
	}
	return t.runner.Create(ctx, pod)
}

// giveUp stops an unstaging pod that cannot start, or as a retry was requested.
func (t *task) giveUp(ctx context.Context) error {
	return t.runner.Stop(ctx, t.unstagingPod)
}

// retryUnstaging records the failure of an unstaging pod. The pod is kept until the next one is created, so that its
// logs can be read.
func (t *task) retryUnstaging(ctx context.Context) error {
	if t.stage.Status.UnstagingFailure == nil || t.stage.Status.UnstagingFailure.PodName != t.unstagingPod.Name {
		failure := workflow.Failure(pavv1.WorkflowUnstaging, t.unstagingPod, t.podError(ctx, t.unstagingPod))
		if t.unstagingPod.DeletionTimestamp != nil && !t.retryRequested(t.stage).IsZero() {
			failure.Reason = pavv1.FailurePodStopped
		}
		return t.unstagingFailed(ctx, t.stage.Status.UnstagingAttempt, failure)
	}
	if err := t.runner.Release(ctx, t.unstagingPod); err != nil {
		return err
	}
	return t.runner.Stop(ctx, t.unstagingPod)
}

func (t *task) unstagingFailed(ctx context.Context, attempt int32, failure *pavv1.WorkflowFailure) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	workflow.Date(failure, int(attempt), t.clusterTime())
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.UnstagingAttempt = attempt + 1
		status.UnstagingFailure = failure
		t.handleRetry(status)
		t.setReady(t.stage, metav1.ConditionFalse, "UnstagingFailed", failure.Message)
	}); err != nil {
		return err
	}
	t.eventf(ctx, corev1.EventTypeWarning, "FailedUnmount", "attempt %d to unstage on node %s failed, and is retried: provisioner %q: %s",
		attempt, t.node, t.stage.Spec.Provisioner, failure.Message)
	return nil
}

// clean removes /pav, then releases the pods and deletes the PavStage.
func (t *task) clean(ctx context.Context) error {
	if err := t.dirs.Remove(ctx, t.stage.Name); err != nil {
		return err
	}
	t.attempts.forget(t.stage.Name)
	if t.stage.Status.StagingFailure != nil {
		if err := t.update(ctx, func(status *pavv1.PavStageStatus) { status.Phase = pavv1.StageFailed }); err != nil {
			return err
		}
	}
	return t.forget(ctx)
}

// forget releases the pods and deletes the PavStage. The record of a failure stays, with its pods, until the volume
// is deleted, but protects nothing. The stage of a client pod leaves no such record, as no other pod has its target
// and so none would replace it; events and kubelet report the failure to the user.
func (t *task) forget(ctx context.Context) error {
	if err := t.releasePods(ctx); err != nil {
		return err
	}
	if err := t.stopOrphans(ctx); err != nil {
		return err
	}

	failure := t.stage.Status.StagingFailure
	keep := failure != nil && t.stage.Spec.Client == nil
	if !keep {
		if err := t.client.Delete(ctx, t.stage, client.Preconditions{UID: &t.stage.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting PavStage %q: %w", t.stage.Name, err)
		}
	}
	before := t.stage.DeepCopy()
	if keep {
		// A stage in use has no owner, as the garbage collector would delete its pods with it.
		if err := t.ownByVolume(); err != nil {
			return err
		}
	}
	if controllerutil.RemoveFinalizer(t.stage, pavv1.StageFinalizer) {
		if err := t.client.Patch(ctx, t.stage, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing PavStage %q: %w", t.stage.Name, err)
		}
		t.logEnd(ctx)
		if failure == nil {
			t.countSuccess(pavv1.WorkflowUnstaging, before.Status.UnstagingPod, t.unstagingPod)
		}
	}
	if failure != nil {
		return fmt.Errorf("%w: provisioner %q: %s", ErrFailed, t.stage.Spec.Provisioner, failure.Message)
	}
	return nil
}

// stopOrphans deletes the pods that the garbage collector would not delete, as they have lost the owner reference to
// the PavStage.
func (t *task) stopOrphans(ctx context.Context) error {
	for _, pod := range t.pods() {
		if pod == nil || !workflow.IsOrphan(pod) {
			continue
		}
		if err := t.runner.Stop(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// ownByVolume makes the PersistentVolume the owner of the PavStage, which is deleted with it.
func (t *task) ownByVolume() error {
	volume := &corev1.PersistentVolume{}
	if err := json.Unmarshal(t.stage.Spec.Volume.Raw, volume); err != nil {
		return fmt.Errorf("reading the persistent volume of PavStage %q: %w", t.stage.Name, err)
	}
	t.stage.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "PersistentVolume", Name: volume.Name, UID: volume.UID}}
	return nil
}

// releasePods removes the finalizers of the pods of the current attempt.
func (t *task) releasePods(ctx context.Context) error {
	for _, pod := range t.pods() {
		if pod == nil {
			continue
		}
		if err := t.runner.Release(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}
