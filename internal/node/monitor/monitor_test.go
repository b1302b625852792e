package monitor

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/nodetest"
)

// restages replaces the restaging of the Stager, and counts the calls of the monitor.
func (n *testNode) restages(err error) *int {
	count := 0
	n.restageStage = func(context.Context, string) error {
		count++
		if err == nil {
			n.API.Lock()
			defer n.API.Unlock()
			n.API.Stages["stage-a"].Status.Attempt++
		}
		return err
	}
	return &count
}

func (n *testNode) degraded(t *testing.T) string {
	t.Helper()
	n.API.Lock()
	defer n.API.Unlock()
	condition := meta.FindStatusCondition(n.API.Stages["stage-a"].Status.Conditions, pavv1.StageDegraded)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return ""
	}
	return condition.Reason
}

// wantTold checks that the claim, its pod and the PavStage each got an event with the reason, and that there are no
// others.
func wantTold(t *testing.T, events []string, reason string, words ...string) {
	t.Helper()
	whom := []string{"PavStage", "PersistentVolumeClaim default/claim", "Pod default/client"}
	if len(events) != len(whom) {
		t.Fatalf("got events %q, want one for each of %q", events, whom)
	}
	for i, event := range events {
		if !strings.HasPrefix(event, whom[i]+": "+reason+": ") {
			t.Errorf("got event %q, want %s told of %s", event, whom[i], reason)
		}
		for _, word := range words {
			if !strings.Contains(event, word) {
				t.Errorf("event %q lacks %q", event, word)
			}
		}
	}
}

func TestMonitor_StagingPodDies_IsReportedOnce_AndTheVolumeIsStagedAgain(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	d := n.Attach(t)
	restaged := n.restages(errors.New("not now"))
	if events := n.look(t); len(events) > 0 || *restaged > 0 {
		t.Errorf("a healthy volume: got events %q and %d restagings", events, *restaged)
	}

	now := time.Now()
	n.now = func() time.Time { return now }
	d.Die()
	n.API.SetPod(nodetest.Fail)
	wantTold(t, n.look(t), "VolumeDead", "OOMKilled", "HostToContainer", "kubectl logs -n pav-pods stage-1")
	if *restaged != 1 || n.degraded(t) != "VolumeDead" || n.PodHeld() {
		t.Errorf("got %d restagings, degraded %q, pod held %t", *restaged, n.degraded(t), n.PodHeld())
	}
	if events := n.look(t); len(events) > 0 || *restaged != 1 {
		t.Errorf("a second look at once: got events %q and %d restagings, want none and 1", events, *restaged)
	}
	n.now = func() time.Time { return time.Now().Add(shortestPause + time.Second) }
	if events := n.look(t); len(events) > 0 || *restaged != 2 {
		t.Errorf("a second look: got events %q and %d restagings, want none and 2", events, *restaged)
	}
	n.now = func() time.Time { return time.Now().Add(longestPause) }
	n.restages(nil)
	wantTold(t, n.look(t), "VolumeRestaged")
}

func TestMonitor_StagingPodDeleted_VolumeResponds_IsReported_AndThePodIsReleased(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	n.Attach(t)
	restaged := n.restages(nil)

	now := metav1.Now()
	n.API.SetPod(func(pod *corev1.Pod) { pod.DeletionTimestamp, pod.Spec.NodeName = &now, "node" })
	if events := n.look(t); len(events) > 0 || !n.PodHeld() {
		t.Errorf("while it stops: got events %q, held %t", events, n.PodHeld())
	}
	n.API.SetPod(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
	wantTold(t, n.look(t), "StagingPodEnded", "staging pod pav-pods/stage-1 was deleted")
	if *restaged != 0 || n.PodHeld() {
		t.Errorf("got %d restagings, pod held %t", *restaged, n.PodHeld())
	}
	delete(n.API.Pods, "stage-1")
	if events := n.look(t); len(events) > 0 || n.degraded(t) != "StagingPodEnded" {
		t.Errorf("when it is gone: got events %q, degraded %q", events, n.degraded(t))
	}
}

func TestMonitor_RecoveryForbidden_OnlyReports(t *testing.T) {
	n := newNode(t)
	n.catalogue = nodetest.Provisioners{Recovery: pavv1.StagingRecoveryNone}
	n.PutStage(t, func(*pavv1.PavStage) {})
	d := n.Attach(t)
	restaged := n.restages(nil)
	d.Die()
	n.API.SetPod(nodetest.Fail)
	wantTold(t, n.look(t), "VolumeDead", "volumeStaging.recovery", "delete the pods")
	if *restaged != 0 {
		t.Errorf("got %d restagings", *restaged)
	}
}

func TestMonitor_BlockVolume_EventSaysToRestartClients(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(stage *pavv1.PavStage) { stage.Spec.VolumeMode = corev1.PersistentVolumeBlock })
	d := n.Attach(t)
	n.restages(errors.New("not now"))
	d.Die()
	n.API.SetPod(nodetest.Fail)
	wantTold(t, n.look(t), "VolumeDead", "pods that use the block device must be restarted")
}

func TestMonitor_DeadVolumeOfARunningPod_IsRestagedLater(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	d := n.Attach(t)
	restaged := n.restages(errors.New("not now"))
	d.Die()
	wantTold(t, n.look(t), "VolumeDead", "staging pod pav-pods/stage-1 runs")
	if *restaged != 0 {
		t.Errorf("got %d restagings at once", *restaged)
	}
	n.now = func() time.Time { return time.Now().Add(confirmation + time.Second) }
	if events := n.look(t); len(events) > 0 || *restaged != 1 {
		t.Errorf("later: got events %q and %d restagings, want none and 1", events, *restaged)
	}
}

func TestMonitor_DeadRepeatedly_RestagingBacksOff(t *testing.T) {
	n := newNode(t)
	began := time.Now()
	n.now = func() time.Time { return began }
	n.PutStage(t, func(stage *pavv1.PavStage) {
		stage.Status.Attempt = 4
		stage.Status.Conditions = []metav1.Condition{{Type: pavv1.StageReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(began)}}
	})
	d := n.Attach(t)
	restaged := n.restages(errors.New("not now"))
	d.Die()
	n.API.SetPod(nodetest.Fail)
	wantTold(t, n.look(t), "VolumeDead")
	n.now = func() time.Time { return began.Add(3500 * time.Millisecond) }
	if n.look(t); *restaged != 0 {
		t.Errorf("got %d restagings too soon", *restaged)
	}
	n.now = func() time.Time { return began.Add(confirmation + 4*time.Second) }
	if n.look(t); *restaged != 1 {
		t.Errorf("got %d restagings after a while, want 1", *restaged)
	}
}

func TestUntilRestaging(t *testing.T) {
	n := newNode(t)
	now := time.Now()
	n.now = func() time.Time { return now }
	// after returns the delay before restaging, for a volume that lived for a time and died a time ago.
	after := func(attempt int32, lived, since time.Duration) time.Duration {
		died := now.Add(-since)
		stage := &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Status: pavv1.PavStageStatus{Attempt: attempt, Conditions: []metav1.Condition{
			{Type: pavv1.StageReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(died.Add(-lived))},
			{Type: pavv1.StageDegraded, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(died)},
		}}}
		return n.untilRestaging(stage)
	}
	steps := []struct {
		name    string
		attempt int32
		lived   time.Duration
		since   time.Duration
		want    time.Duration
	}{
		{name: "the first death", attempt: 1, want: 0},
		{name: "a second one at once", attempt: 2, want: time.Second},
		{name: "a while ago", attempt: 2, since: time.Second, want: 0},
		{name: "the next", attempt: 4, lived: time.Second, want: 3 * time.Second},
		{name: "many", attempt: 40, lived: time.Minute, want: 4 * time.Minute},
		{name: "one that lived long", attempt: 41, lived: longLife, want: 0},
		{name: "the first after it", attempt: 42, want: time.Second},
		{name: "the second", attempt: 43, want: 2 * time.Second},
	}
	for _, step := range steps {
		if got := after(step.attempt, step.lived, step.since); got != step.want {
			t.Errorf("%s: got %s, want %s", step.name, got, step.want)
		}
	}
	n.forget("s", n.now())
	if got := after(43, 0, 0); got != 5*time.Minute {
		t.Errorf("an agent that knows nothing: got %s, want 5m", got)
	}
}

func TestMonitor_NodeShutsDown_NothingIsRestaged_UntilTheShutdownIsCancelled(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	d := n.Attach(t)
	restaged := n.restages(errors.New("not now"))
	d.Die()
	n.API.SetPod(func(pod *corev1.Pod) {
		nodetest.Fail(pod)
		pod.Status.Reason = "Terminated"
		pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.Now()
	})
	n.look(t)
	if *restaged != 0 {
		t.Errorf("got %d restagings at once", *restaged)
	}
	n.now = func() time.Time { return time.Now().Add(shutdownTime + time.Second) }
	if n.look(t); *restaged != 1 {
		t.Errorf("got %d restagings later, want 1", *restaged)
	}
}

func TestMonitor_HangingVolume_IsReported_AndRecovers(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	d := n.Attach(t)
	restaged := n.restages(nil)
	n.health.Timeout = 100 * time.Millisecond

	goOn := d.Hang()
	n.API.SetPod(nodetest.Fail)
	wantTold(t, n.look(t), "VolumeSilent", "no answer within", "may still write")
	if *restaged != 0 {
		t.Errorf("a volume that hangs is staged again")
	}
	goOn()
	n.health.Timeout = time.Minute
	wantTold(t, n.look(t), "StagingPodEnded")
}

func TestMonitor_Start_FindsStages_WatchesPods_AndStopsCleanly(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	d := n.Attach(t)
	working := make(chan struct{})
	n.restageStage = func(ctx context.Context, _ string) error {
		close(working)
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Start(ctx) }()
	d.Die()
	n.API.SetPod(nodetest.Fail)
	n.Recheck("stage-a")
	select {
	case <-working:
	case <-time.After(time.Minute):
		t.Fatal("nothing is staged again")
	}
	cancel()
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the monitor does not end")
	}
	n.Recheck("stage-a") // must neither block nor panic
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return !strings.Contains(stacks(), "monitor.(*Monitor)"), nil
	})
	if err != nil {
		t.Errorf("goroutines are left: %s", stacks())
	}
}

func stacks() string {
	all := make([]byte, 1<<20)
	return string(all[:runtime.Stack(all, true)])
}
