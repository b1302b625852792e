package monitor

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// confirmation is how long a volume must be dead before it is restaged, unless its staging pod has failed.
	confirmation = 10 * time.Second

	// longLife is how long a volume must have worked so that its death does not count as a repeated one.
	longLife = 10 * time.Minute

	// shutdownTime is how long after the end of a staging pod its node counts as shutting down, if kubelet said so.
	shutdownTime = 5 * time.Minute
)

// gather returns the inputs of decide, and the staging pod.
func (m *Monitor) gather(ctx context.Context, stage *pavv1.PavStage) (snapshot, *corev1.Pod, error) {
	status := &stage.Status
	is := recorded(stage)
	is.claimOnly = stage.Spec.Scope == pavv1.StagingScopePod && stage.Spec.Client == nil
	is.thisBoot = m.stager.IsThisBoot(status)
	if degraded := meta.FindStatusCondition(status.Conditions, pavv1.StageDegraded); degraded != nil && degraded.Status == metav1.ConditionTrue {
		is.degraded = loss(degraded.Reason)
	}
	if is.claimOnly || is.restaging && is.thisBoot {
		return is, nil, nil
	}
	if is.phase != pavv1.StageStaged {
		pod, err := m.gatherAbandoned(ctx, stage, &is)
		return is, pod, err
	}
	pod, err := m.runner.Get(ctx, status.StagingPod, stage.UID)
	if err != nil {
		return is, nil, err
	}
	m.gatherPod(stage.Name, pod, &is)
	if is.attached, err = m.dirs.Attached(ctx, stage.Name); err != nil {
		return is, nil, err
	}
	if is.attached {
		is.volume, is.probeError, err = m.probe(ctx, stage.Name)
	}
	is.confirmed = m.confirmed(stage.Name, is.volume)
	if err == nil && isOutdated(stage) {
		is.outdated, err = m.hasLaterAccount(ctx, stage)
	}
	if is.volume == dead || is.outdated {
		is.early = m.early(stage)
	}
	if err == nil && is.volume != dead {
		err = m.gatherExchanged(ctx, stage, &is)
	}
	if err == nil {
		is.restageable, err = m.restageable(ctx, stage.Spec.Provisioner)
	}
	return is, pod, err
}

// isOutdated reports whether the staging pod was to be replaced, as it has the credentials of an account that was replaced.
func isOutdated(stage *pavv1.PavStage) bool {
	wanted, err := strconv.ParseInt(stage.Annotations[pavv1.RestageAnnotation], 10, 32)
	has := stage.Status.BucketAccount
	return err == nil && has != nil && int64(*has) < wanted
}

// hasLaterAccount reports whether a new staging pod would get the credentials of a later account. If an administrator has removed the access
// of the volume by force, the numbers have begun again, and the request is void.
func (m *Monitor) hasLaterAccount(ctx context.Context, stage *pavv1.PavStage) (bool, error) {
	volume := &pavv1.PavVolume{}
	if err := m.client.Get(ctx, client.ObjectKey{Name: stage.Spec.VolumeName}, volume); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	shown := volume.Status.BucketAccount
	return shown != nil && *shown > *stage.Status.BucketAccount, nil
}

// recorded returns how far a stage is, as its PavStage says.
func recorded(stage *pavv1.PavStage) snapshot {
	return snapshot{
		phase:     stage.Status.Phase,
		protected: slices.Contains(stage.Finalizers, pavv1.StageFinalizer),
		restaging: stage.Status.Restaging,
	}
}

// gatherAbandoned looks at the pod of a volume that is not staged yet, if kubelet has made no call for long.
func (m *Monitor) gatherAbandoned(ctx context.Context, stage *pavv1.PavStage, is *snapshot) (*corev1.Pod, error) {
	ref := stage.Status.StagingPod
	if is.phase == pavv1.StageValidating {
		ref = stage.Status.ValidationPod
	}
	if is.phase != pavv1.StageValidating && is.phase != pavv1.StageStaging || ref == nil || m.graceLeft(stage.Name) > 0 {
		return nil, nil
	}
	pod, err := m.runner.Get(ctx, ref, stage.UID)
	if err != nil || pod == nil {
		return nil, err
	}
	m.gatherPod(stage.Name, pod, is)
	is.abandoned = pod.DeletionTimestamp != nil
	return pod, nil
}

func (m *Monitor) gatherPod(stage string, pod *corev1.Pod, is *snapshot) {
	is.stagingPod = workflow.Observe(pod)
	if pod == nil {
		return
	}
	is.outcomeHeld = slices.Contains(pod.Finalizers, pavv1.PodFinalizer)
	if left := m.untilShutdown(pod); left > 0 {
		is.shutdown = true
		m.queue.AddAfter(stage, left)
	}
}

// untilShutdown returns how much longer the node counts as shutting down. A shutdown may be canceled.
func (m *Monitor) untilShutdown(pod *corev1.Pod) time.Duration {
	// Kubelet's reasons for pods that it ends, or does not start, because the node shuts down.
	if pod.Status.Reason != "Terminated" && pod.Status.Reason != "NodeShutdown" {
		return 0
	}
	ended := m.now()
	if workflow.Observe(pod).IsOver() {
		ended = pod.CreationTimestamp.Time
		for i := range pod.Status.ContainerStatuses {
			if terminated := pod.Status.ContainerStatuses[i].State.Terminated; terminated != nil && terminated.FinishedAt.After(ended) {
				ended = terminated.FinishedAt.Time
			}
		}
	}
	return ended.Add(shutdownTime).Sub(m.now())
}

// probe asks the volume whether it answers, and returns the answer and the text of its error.
func (m *Monitor) probe(ctx context.Context, stage string) (is answer, probeError string, err error) {
	_, err = m.health.Probe(ctx, stage, m.dirs.Volume(stage))
	switch {
	case ctx.Err() != nil:
		return unseen, "", ctx.Err()
	case err == nil:
		return answers, "", nil
	case errors.Is(err, mount.ErrDead):
		return dead, err.Error(), nil
	case errors.Is(err, mount.ErrNotMounted):
		return unseen, "", nil // it was detached since; the call that did that reports it
	}
	// An error does not prove that no client can write any more.
	return silent, err.Error(), nil
}

// confirmed reports whether a volume has been dead for long enough. If not, it is checked again then.
func (m *Monitor) confirmed(stage string, volume answer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if volume != dead {
		delete(m.deadAt, stage)
		return false
	}
	since, known := m.deadAt[stage]
	if !known {
		since = m.now()
		m.deadAt[stage] = since
	}
	left := since.Add(confirmation).Sub(m.now())
	if left > 0 {
		m.queue.AddAfter(stage, left)
	}
	return left <= 0
}

// early reports whether it is too early to restage a dead volume again. If so, it is checked again later: a daemon
// that dies as soon as it is used must not cause mounts and pods all day long.
func (m *Monitor) early(stage *pavv1.PavStage) bool {
	left := m.untilRestaging(stage)
	if left > 0 {
		m.queue.AddAfter(stage.Name, left)
	}
	return left > 0
}

// untilRestaging returns how long to wait before a dead volume is restaged: longer each time that it died soon after
// it was staged. An agent that has just started counts all attempts as such.
func (m *Monitor) untilRestaging(stage *pavv1.PavStage) time.Duration {
	status := &stage.Status
	ready := meta.FindStatusCondition(status.Conditions, pavv1.StageReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return 0
	}
	died := m.clusterTime()
	if degraded := meta.FindStatusCondition(status.Conditions, pavv1.StageDegraded); degraded != nil && degraded.Status == metav1.ConditionTrue {
		died = degraded.LastTransitionTime.Time
	}
	if m.stager.RetryRequested(stage).After(died) {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if died.Sub(ready.LastTransitionTime.Time) >= longLife {
		m.resetAt[stage.Name] = status.Attempt
	}
	deaths := status.Attempt - max(m.resetAt[stage.Name], 1)
	if deaths <= 0 {
		return 0
	}
	return max(ready.LastTransitionTime.Add(workflow.RetryDelay(int(deaths))).Sub(m.clusterTime()), 0)
}

// restageable reports whether the recovery of the current definition is Restage.
func (m *Monitor) restageable(ctx context.Context, name string) (bool, error) {
	provisioner, err := m.catalogue.Provisioner(ctx, name)
	return provisioner != nil && provisioner.Spec.VolumeStaging.Recovery != pavv1.StagingRecoveryNone, err
}
