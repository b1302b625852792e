package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestValidationPodFails(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "invalid")
	l.hook(t, "validate", "echo 'no such colour' > /pav/error; exit 1")
	claim := l.claim(t, "data")
	wantClaimEvent(t, claim, "ProvisioningFailed", l.name, "no such colour", "exit code 1", "kubectl logs -n pav-pods validate-")
	awaitVolume(t, claim, "has failed twice", func(v *pavv1.PavVolume) bool {
		return v.Status.Attempt >= 2 && failedAs(v.Status.Failure, pavv1.WorkflowValidation, 1, "no such colour")
	})
	must(t, l.wantEffects(claim)) // so that nothing had to be reverted
	l.unhook(t, "validate")
	awaitBound(t, claim)
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

// failedAs reports whether the recorded failure is that of a pod of the kind, with the pod's words.
func failedAs(failure *pavv1.WorkflowFailure, kind string, exitCode int32, words ...string) bool {
	return failure != nil && failure.Workflow == kind && failure.ExitCode != nil && *failure.ExitCode == exitCode &&
		strings.HasPrefix(failure.PodName, kind+"-") && hasAll(failure.Message, words)
}

func TestCreationPodFails_IsRevertedAndTriedAgain(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "failing")
	l.hook(t, "create", "echo 'looking for room'; echo 'there is no room' > /pav/error; exit 3")
	claim := l.claim(t, "data")
	wantClaimEvent(t, claim, "ProvisioningFailed", l.name, "there is no room", "exit code 3", "kubectl logs -n pav-pods create-")
	awaitVolume(t, claim, "has failed", func(v *pavv1.PavVolume) bool {
		return failedAs(v.Status.Failure, pavv1.WorkflowCreation, 3, "there is no room")
	})

	// Its log can be read until the next one begins.
	eventually(t, "the log of the failed pod can be read", func(ctx context.Context) error {
		now, err := volumeOf(ctx, claim)
		if err != nil || now.Status.Failure == nil {
			return errors.Join(err, errors.New("no failure is recorded"))
		}
		return wantLog(ctx, now.Status.Failure.PodNamespace, now.Status.Failure.PodName, "looking for room")
	})
	wantToldSoon(t, claim)
	awaitVolume(t, claim, "has failed three times", func(v *pavv1.PavVolume) bool { return v.Status.Attempt >= 3 })
	l.unhook(t, "create")
	pv := awaitBound(t, claim)
	volume := awaitVolume(t, claim, "ready", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeReady })
	if volume.Status.Failure != nil || volume.Status.Attempt < 3 {
		t.Errorf("PavVolume %s: after success, the status is %+v", pv.Name, volume.Status)
	}
	removeClaim(t, claim)
}

// A pod that has changed nothing is not reverted, and not tried again every few minutes, but when the claim has changed.
func TestCreationIsInfeasible_UntilTheClaimChanges(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "infeasible")
	l.hook(t, "create", `rmdir "/storage/volumes/$volume"; sed -i "/^create $volume /d" /storage/journal; echo 'at most 1Ti' > /pav/infeasible; exit 3`)
	claim := l.claim(t, "data")
	wantClaimEvent(t, claim, "ProvisioningFailed", l.name, "at most 1Ti", "exit code 3", "attempt 2 follows in 10m0s, or when the claim or the definition changes")
	awaitVolume(t, claim, "is infeasible", func(v *pavv1.PavVolume) bool {
		return failedAs(v.Status.Failure, pavv1.WorkflowCreation, 3, "at most 1Ti") && v.Status.Failure.Reason == pavv1.FailureInfeasible && v.Status.Step == ""
	})
	must(t, l.wantEffects(claim)) // so that nothing had to be reverted
	l.unhook(t, "create")
	changed := claim.DeepCopy()
	changed.Annotations = map[string]string{"example.com/size": "smaller"}
	must(t, kube.Patch(t.Context(), changed, client.MergeFrom(claim)))
	awaitBound(t, claim)
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

func wantLog(ctx context.Context, namespace, pod, want string) error {
	log, err := kubectl(ctx, "", "logs", "-n", namespace, pod)
	if err == nil && strings.TrimSpace(log) != want {
		err = fmt.Errorf("the log is %q, want %q", log, want)
	}
	return err
}

// wantToldSoon fails the test unless the last failure of a creation pod that still exists was reported in time.
func wantToldSoon(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	var late time.Duration
	eventually(t, "the last failure is reported", func(ctx context.Context) (err error) {
		late, err = eventDelay(ctx, claim)
		return err
	})
	if late > reportedWithin {
		t.Errorf("the failure was reported after %s", late)
	}
}

// eventDelay returns how long after its end the failure of a claim's creation pod was reported.
func eventDelay(ctx context.Context, claim *corev1.PersistentVolumeClaim) (time.Duration, error) {
	volume, err := volumeOf(ctx, claim)
	if err != nil || volume.Status.Failure == nil {
		return 0, err
	}
	pod := &corev1.Pod{}
	if err := kube.Get(ctx, client.ObjectKey{Namespace: volume.Status.Failure.PodNamespace, Name: volume.Status.Failure.PodName}, pod); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	terminated := pod.Status.ContainerStatuses[0].State.Terminated
	if terminated == nil {
		return 0, fmt.Errorf("pod %s has failed, and its container has not ended", pod.Name)
	}
	event, err := findEvent(ctx, claim.Namespace, claim.Name, "ProvisioningFailed", pod.Name)
	if err != nil {
		return 0, err
	}
	ended := terminated.FinishedAt
	for _, fields := range pod.ManagedFields { // Kubelet may have reported the end late.
		if fields.Manager == "kubelet" && fields.Subresource == "status" && ended.Before(fields.Time) && !event.FirstTimestamp.Before(fields.Time) {
			ended = *fields.Time
		}
	}
	return event.FirstTimestamp.Sub(ended.Time), nil
}

// failsOnce takes a claim through a creation that fails because of what the test does while the first pod is held, and
// through another one that succeeds.
func failsOnce(t *testing.T, l *ledger, disturb func(pod *corev1.Pod), words ...string) {
	t.Helper()
	l.hold(t, "create")
	claim := l.claim(t, "data")
	pod := l.runningPod(t, pavv1.WorkflowCreation, claim)
	l.awaitEffects(t, claim, "create")
	disturb(pod)
	wantClaimEvent(t, claim, "ProvisioningFailed", append([]string{l.name, pod.Name}, words...)...)
	l.unhook(t, "create")
	awaitBound(t, claim)
	must(t, l.wantEffects(claim, "create", "delete", "create"))
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete", "create", "delete"))
}

func TestCreationPodEvicted_IsRevertedAndTriedAgain(t *testing.T) {
	t.Parallel()
	failsOnce(t, newLedger(t, "creation-evicted"), func(pod *corev1.Pod) {
		must(t, kube.SubResource("eviction").Create(t.Context(), pod, &policyv1.Eviction{}))
	})
}

func TestCreationPodDeletedByForce_IsRevertedAndTriedAgain(t *testing.T) {
	t.Parallel()
	failsOnce(t, newLedger(t, "forced"), func(pod *corev1.Pod) {
		_, err := kubectl(t.Context(), "", "delete", "pod", "-n", pod.Namespace, pod.Name, "--force", "--grace-period=0", "--wait=false")
		must(t, err)
	})
}

func TestCreationPodOutOfMemory(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "greedy", with("create container", "resources: {limits: {memory: 32Mi}}"))
	l.hook(t, "create", `hoard=x; while true; do hoard=$hoard$hoard; done`)
	claim := l.claim(t, "data")
	wantClaimEvent(t, claim, "ProvisioningFailed", l.name, "OOMKilled", "exit code 137")
	l.unhook(t, "create")
	awaitBound(t, claim)
	removeClaim(t, claim)
}

// Storage that was created, or may have been, is deleted before the next attempt, however long that takes.
func TestRevertingFails_NothingElseRunsBeforeItSucceeds(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "irreversible")
	l.hook(t, "create", "echo 'half of it' > /pav/error; exit 3")
	l.hook(t, "delete", "echo 'cannot undo it' > /pav/error; exit 4")
	claim := l.claim(t, "data")
	volume := awaitVolume(t, claim, "has failed to revert twice", func(v *pavv1.PavVolume) bool {
		return v.Status.Step == pavv1.StepReverting && v.Status.DeletionAttempt >= 2 &&
			failedAs(v.Status.DeletionFailure, pavv1.WorkflowDeletion, 4, "cannot undo it", "kubectl logs -n pav-pods delete-")
	})
	wantClaimEvent(t, claim, "ProvisioningFailed", l.name, "half of it")
	wantClaimEvent(t, claim, "VolumeFailedDelete", l.name, "cannot undo it")
	if volume.Status.Attempt != 1 {
		t.Errorf("attempt %d began before the first was reverted", volume.Status.Attempt)
	}
	must(t, l.wantEffects(claim, "create"))
	l.unhook(t, "create", "delete")
	awaitBound(t, claim)
	must(t, l.wantEffects(claim, "create", "delete", "create"))
	volume = awaitVolume(t, claim, "ready", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeReady })
	if s := volume.Status; s.Failure != nil || s.DeletionFailure != nil || s.DeletionAttempt != 0 {
		t.Errorf("after success, the status is %+v", s)
	}
	removeClaim(t, claim)
}
