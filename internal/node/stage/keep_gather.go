package stage

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// confirmation is how long a volume must have been dead before that is believed of it, unless its staging pod has failed.
	confirmation = 10 * time.Second

	// longLife is how long a volume must have been well after it was staged for its death not to be one in a row.
	longLife = 10 * time.Minute

	// shutdownTime is how long after the end of a staging pod its node is taken to be going down, where kubelet says so.
	shutdownTime = 5 * time.Minute
)

// gather finds out what the next act depends on, and returns the staging pod with it.
func (k *Keeper) gather(ctx context.Context, stage *pavv1.PavStage) (kept, *corev1.Pod, error) {
	status := &stage.Status
	is := kept{
		phase:     status.Phase,
		restaging: status.Restaging,
		claimOnly: stage.Spec.Scope == pavv1.StagingScopePod && stage.Spec.Client == nil,
		thisBoot:  k.stager.isThisBoot(status),
	}
	if degraded := meta.FindStatusCondition(status.Conditions, pavv1.StageDegraded); degraded != nil && degraded.Status == metav1.ConditionTrue {
		is.degraded = loss(degraded.Reason)
	}
	if is.phase != pavv1.StageStaged || is.claimOnly || is.restaging {
		return is, nil, nil
	}
	pod, err := k.stager.runner.Get(ctx, status.StagingPod, stage.UID)
	if err != nil {
		return is, nil, err
	}
	k.gatherPod(stage.Name, pod, &is)
	if is.attached, err = k.stager.dirs.Attached(ctx, stage.Name); err != nil {
		return is, nil, err
	}
	if is.attached {
		is.volume, is.told, err = k.probe(ctx, stage.Name)
	}
	is.confirmed = k.confirmed(stage.Name, is.volume)
	if is.volume == dead {
		is.early = k.early(stage)
	}
	if err == nil && is.volume != dead {
		err = k.gatherExchanged(ctx, stage, &is)
	}
	if err == nil {
		is.restageable, err = k.restageable(ctx, stage.Spec.Provisioner)
	}
	return is, pod, err
}

func (k *Keeper) gatherPod(stage string, pod *corev1.Pod, is *kept) {
	is.stagingPod = workflow.Observe(pod)
	if pod == nil {
		return
	}
	is.outcomeHeld = slices.Contains(pod.Finalizers, pavv1.PodFinalizer)
	if left := k.untilShutdown(pod); left > 0 {
		is.shutdown = true
		k.queue.AddAfter(stage, left)
	}
}

// untilShutdown returns for how long yet the node is taken to be going down; a shutdown may be called off.
func (k *Keeper) untilShutdown(pod *corev1.Pod) time.Duration {
	// Kubelet's words for a pod that it ends, and one that it does not start, as the node goes down.
	if pod.Status.Reason != "Terminated" && pod.Status.Reason != "NodeShutdown" {
		return 0
	}
	ended := k.now()
	if over := workflow.Observe(pod); over == workflow.Failed || over == workflow.Succeeded {
		ended = pod.CreationTimestamp.Time
		for i := range pod.Status.ContainerStatuses {
			if terminated := pod.Status.ContainerStatuses[i].State.Terminated; terminated != nil && terminated.FinishedAt.After(ended) {
				ended = terminated.FinishedAt.Time
			}
		}
	}
	return ended.Add(shutdownTime).Sub(k.now())
}

// probe asks the volume whether it answers, and returns the answer and the text of its error.
func (k *Keeper) probe(ctx context.Context, stage string) (is answer, told string, err error) {
	_, err = k.health.Probe(ctx, stage, k.stager.dirs.Volume(stage))
	switch {
	case ctx.Err() != nil:
		return unseen, "", ctx.Err()
	case err == nil:
		return answers, "", nil
	case errors.Is(err, mount.ErrDead):
		return dead, err.Error(), nil
	case errors.Is(err, mount.ErrNotMounted):
		return unseen, "", nil // It has been detached since; whoever did that is about to say so.
	}
	// An error is no proof that nothing is written any more.
	return silent, err.Error(), nil
}

// confirmed says whether a volume has been dead for a while, and sees to it that it is looked at again.
func (k *Keeper) confirmed(stage string, volume answer) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if volume != dead {
		delete(k.deadAt, stage)
		return false
	}
	since, known := k.deadAt[stage]
	if !known {
		since = k.now()
		k.deadAt[stage] = since
	}
	left := since.Add(confirmation).Sub(k.now())
	if left > 0 {
		k.queue.AddAfter(stage, left)
	}
	return left <= 0
}

// early says whether a dead volume was staged anew too short a while ago for another time, and sees to it
// that it is looked at again: a daemon that dies as soon as it is used must not cost mounts and pods all day long.
func (k *Keeper) early(stage *pavv1.PavStage) bool {
	left := k.untilRestaging(stage)
	if left > 0 {
		k.queue.AddAfter(stage.Name, left)
	}
	return left > 0
}

// untilRestaging returns for how long yet a dead volume is to be left as it is: longer with each time that
// it has died soon after it was staged. An agent that begins anew takes all attempts for such.
func (k *Keeper) untilRestaging(stage *pavv1.PavStage) time.Duration {
	status := &stage.Status
	ready := meta.FindStatusCondition(status.Conditions, pavv1.StageReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return 0
	}
	died := k.stager.clusterTime()
	if degraded := meta.FindStatusCondition(status.Conditions, pavv1.StageDegraded); degraded != nil && degraded.Status == metav1.ConditionTrue {
		died = degraded.LastTransitionTime.Time
	}
	if k.stager.troubles.asked(stage, k.stager.clusterTime()).After(died) {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if died.Sub(ready.LastTransitionTime.Time) >= longLife {
		k.rows[stage.Name] = status.Attempt
	}
	deaths := status.Attempt - max(k.rows[stage.Name], 1)
	if deaths <= 0 {
		return 0
	}
	return max(ready.LastTransitionTime.Add(pauseAfter(int(deaths))).Sub(k.stager.clusterTime()), 0)
}

// restageable says whether the provisioner, as it is now, wants volumes to be staged anew.
func (k *Keeper) restageable(ctx context.Context, name string) (bool, error) {
	provisioner, err := k.stager.catalogue.Provisioner(ctx, name)
	return provisioner != nil && provisioner.Spec.VolumeStaging.Recovery != pavv1.StagingRecoveryNone, err
}
