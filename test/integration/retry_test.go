package integration

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/retry"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/kubelet"
)

// soon is far less than the five minutes that no test here waits.
const soon = 30 * time.Second

// mustRetry requests the next attempt, as "kubectl pav retry" does, and returns for how many objects.
func mustRetry(t *testing.T, c *cluster, ref status.Ref) int {
	t.Helper()
	results, err := retry.Run(t.Context(), c.Admin, ref, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, r := range results {
		t.Logf("%s/%s: %t, %s", r.Kind, r.Name, r.Asked, r.What)
		if r.Asked {
			asked++
		}
	}
	return asked
}

// makeThirtieth makes a deletion attempt the thirtieth, after which the delay is five minutes.
func makeThirtieth(t *testing.T, c *cluster, volume *pavv1.PavVolume) {
	t.Helper()
	eventually(t, "the number of attempts is written", func(ctx context.Context) (bool, string) {
		if err := c.Admin.Get(ctx, client.ObjectKeyFromObject(volume), volume); err != nil {
			return false, err.Error()
		}
		volume.Status.DeletionAttempt = 30
		err := c.Admin.Status().Update(ctx, volume)
		return err == nil, ""
	})
}

func TestRetry_NextDeletionPodWithoutTheDelay(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "hasty", withDeletionPod, inPool)
	claim := mustCreate(t, c, ownedClaim("hasty", "me"))
	pv, volume := bound(t, c, claim)
	mustDelete(t, c, claim)
	gone(t, c, claim)
	pod, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	ref := status.Ref{Kind: status.Claim, Namespace: claim.Namespace, Name: claim.Name}
	if asked := mustRetry(t, c, ref); asked != 0 {
		t.Error("something was retried while the deletion pod runs")
	}
	makeThirtieth(t, c, volume)
	end(t, c, pod, workflow.Result{Error: "still needed"}, 4)
	wantEvent(t, c, pv, "Warning", "VolumeFailedDelete", "the next follows in 5m0s")

	began := time.Now()
	if asked := mustRetry(t, c, ref); asked != 1 {
		t.Errorf("%d objects were annotated, want the PavVolume", asked)
	}
	exists(t, c, volume, "is tried again", func(v *pavv1.PavVolume) bool {
		return v.Status.DeletionAttempt == 31 && v.Status.Pod != nil && v.Status.Pod.UID != ""
	})
	if took := time.Since(began); took > soon {
		t.Errorf("the next attempt began after %s", took)
	}
	next, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, next, workflow.Result{Error: "again"}, 4)
	wantEvent(t, c, pv, "Warning", "VolumeFailedDelete", "deletion attempt 31 failed")
	if volume.Annotations[pavv1.RetryAnnotation] == "" {
		t.Error("the agent has removed the request")
	}
	// One request is one attempt.
	exists(t, c, volume, "waits", func(v *pavv1.PavVolume) bool {
		return v.Status.DeletionAttempt == 31 && v.Status.Pod == nil && v.Status.DeletionFailure != nil
	})
	mustRetry(t, c, status.Ref{Kind: status.PV, Name: pv.Name})
	exists(t, c, volume, "is tried once more", func(v *pavv1.PavVolume) bool {
		return v.Status.DeletionAttempt == 32 && v.Status.Pod != nil && v.Status.Pod.UID != ""
	})
	last, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, last, workflow.Result{}, 0)
	gone(t, c, pv)
	gone(t, c, volume)
}

// Kubelet may not call again for minutes, so the agent continues by itself.
func TestRetry_NextUnstagingPodWithoutTheDelay(t *testing.T) {
	var fixed atomic.Bool
	works := workers(t, nil)
	n := newNode(t, func(ctx context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() == pavv1.WorkflowUnstaging && !fixed.Load() {
			return 1
		}
		return works(ctx, pod)
	})
	a := n.run(t)
	defer a.Stop(t)
	v := n.volume(t, "served-retried")
	n.stage(t, v)

	call, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	called := make(chan error, 1)
	go func() { called <- n.Unstage(call, v) }()
	stage := &pavv1.PavStage{}
	eventually(t, "unstaging has failed", func(ctx context.Context) (bool, string) {
		stages := &pavv1.PavStageList{}
		if err := n.c.Admin.List(ctx, stages); err != nil {
			return false, err.Error()
		}
		if len(stages.Items) == 1 {
			stage = &stages.Items[0]
		}
		return stage.Status.UnstagingFailure != nil, string(stage.Status.Phase)
	})
	cancel()
	if err := <-called; err == nil {
		t.Fatal("the volume was unstaged")
	}
	if failure := stage.Status.UnstagingFailure; failure.Reason != pavv1.FailurePodFailed || !failure.NextAttemptTime.After(failure.Time.Time) {
		t.Errorf("unstaging failed with reason %q at %s, and is repeated at %s", failure.Reason, failure.Time, failure.NextAttemptTime)
	}

	// As if it were the thirtieth attempt, after which the delay is five minutes.
	eventually(t, "the number of attempts is written", func(ctx context.Context) (bool, string) {
		if err := n.c.Admin.Get(ctx, client.ObjectKeyFromObject(stage), stage); err != nil {
			return false, err.Error()
		}
		stage.Status.UnstagingAttempt = 30
		err := n.c.Admin.Status().Update(ctx, stage)
		return err == nil, ""
	})
	fixed.Store(true)
	began := time.Now()
	if asked := mustRetry(t, n.c, status.Ref{Kind: status.Stage, Name: stage.Name}); asked != 1 {
		t.Error("the PavStage was not annotated")
	}
	gone(t, n.c, stage)
	if took := time.Since(began); took > soon {
		t.Errorf("unstaging was over after %s", took)
	}
	n.unstage(t, v)
}
