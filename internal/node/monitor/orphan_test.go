package monitor

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	staging "github.com/albertofaria/pav/internal/node/stage"
)

func TestMonitor_UnstagesOrphans(t *testing.T) {
	later := func(_ *testing.T, n *testNode) { n.unused(2 * time.Hour) }
	user := func(phase corev1.PodPhase, volume corev1.VolumeSource) func(*testing.T, *testNode) {
		return func(_ *testing.T, n *testNode) {
			n.API.Pods["user"] = &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "user", UID: "user-uid"},
				Spec:       corev1.PodSpec{NodeName: "node", Volumes: []corev1.Volume{{Name: "data", VolumeSource: volume}}},
				Status:     corev1.PodStatus{Phase: phase},
			}
		}
	}
	phase := func(phase pavv1.StagePhase) func(*testing.T, *testNode) {
		return func(_ *testing.T, n *testNode) { n.API.Stages["stage-a"].Status.Phase = phase }
	}
	ofClaim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	directory := func(uid types.UID) func(*testing.T, *testNode) {
		return func(t *testing.T, n *testNode) {
			t.Helper()
			n.PodDirectory(t, uid)
		}
	}
	ofClient := func(_ *testing.T, n *testNode) {
		n.API.Stages["stage-a"].Spec.Scope = pavv1.StagingScopePod
		n.API.Stages["stage-a"].Spec.Client = &pavv1.StageClient{Namespace: "default", Name: "user", UID: "user-uid", Target: "/target"}
	}
	const unstaged, unpublished = "handle ", "handle /target"
	tests := map[string]struct {
		when []func(*testing.T, *testNode)
		want string
	}{
		"kubelet is given time": {nil, ""},
		"nobody uses it":        {when: []func(*testing.T, *testNode){later}, want: unstaged},
		"nobody uses it, the agent has just seen it": {when: []func(*testing.T, *testNode){func(_ *testing.T, n *testNode) {
			n.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		}}, want: ""},
		"nobody uses it, and staging hangs":   {when: []func(*testing.T, *testNode){later, phase(pavv1.StageStaging)}, want: unstaged},
		"nobody uses it, unstaging began":     {when: []func(*testing.T, *testNode){later, phase(pavv1.StageUnstaging)}, want: unstaged},
		"nobody uses it, it is validated":     {when: []func(*testing.T, *testNode){later, phase(pavv1.StageValidating)}, want: unstaged},
		"it is being staged again for nobody": {when: []func(*testing.T, *testNode){later, func(_ *testing.T, n *testNode) { n.API.Stages["stage-a"].Status.Restaging = true }}, want: unstaged},
		"it is the record of a failure": {when: []func(*testing.T, *testNode){later, phase(pavv1.StageFailed), func(_ *testing.T, n *testNode) {
			n.API.Stages["stage-a"].Finalizers = nil
		}}, want: ""},
		"kubelet has just called": {when: []func(*testing.T, *testNode){func(_ *testing.T, n *testNode) {
			now := time.Now().Add(2 * time.Hour)
			n.now = func() time.Time { return now }
			n.callEnded("stage-a")
		}}, want: ""},
		"a pod has its claim":         {when: []func(*testing.T, *testNode){later, user(corev1.PodPending, ofClaim("claim"))}, want: ""},
		"a pod has another claim":     {when: []func(*testing.T, *testNode){later, user(corev1.PodRunning, ofClaim("other"))}, want: unstaged},
		"the pod that had it is over": {when: []func(*testing.T, *testNode){later, user(corev1.PodSucceeded, ofClaim("claim"))}, want: unstaged},
		"a pod has it by its template": {when: []func(*testing.T, *testNode){later, user(corev1.PodRunning, corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
			func(_ *testing.T, n *testNode) { n.API.Stages["stage-a"].Spec.ClaimRef.Name = "user-data" }}, want: ""},
		"kubelet has the directory of a pod that the API server has forgotten": {when: []func(*testing.T, *testNode){later,
			directory("forgotten")}, want: ""},
		"it is published": {when: []func(*testing.T, *testNode){later, func(t *testing.T, n *testNode) { t.Helper(); n.Attach(t) }}, want: ""},
		"a client's stage, and the pod is there": {when: []func(*testing.T, *testNode){later, ofClient,
			user(corev1.PodRunning, ofClaim("claim"))}, want: ""},
		"a client's stage, and only another pod has the volume": {when: []func(*testing.T, *testNode){later, ofClient,
			directory("other")}, want: unpublished},
		"a client's stage, whose pod's directory is there": {when: []func(*testing.T, *testNode){later, ofClient,
			directory("user-uid")}, want: ""},
		"the PavStage is gone, and its directory is not": {when: []func(*testing.T, *testNode){later,
			func(_ *testing.T, n *testNode) { delete(n.API.Stages, "stage-a") }}, want: unstaged},
		"the PavStage is another node's, and the directory is here": {when: []func(*testing.T, *testNode){later,
			func(_ *testing.T, n *testNode) { n.API.Stages["stage-a"].Spec.NodeName = "other" }}, want: unstaged},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.PutStage(t, func(*pavv1.PavStage) {})
			must(t, os.MkdirAll(n.Dirs.Volume("stage-a"), 0o755))
			got := ""
			n.unstage = func(ctx context.Context, of staging.Subject, idle func(context.Context) (bool, error)) error {
				is, err := idle(ctx)
				if is {
					got += of.Handle + " " + of.Target
				}
				return err
			}
			n.restages(nil)
			for _, prepare := range test.when {
				prepare(t, n)
			}
			events := strings.Join(n.look(t), "\n")
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if told := strings.Contains(events, "UnstagingOrphan"); told != (test.want != "" && !strings.HasPrefix(name, "the PavStage is")) {
				t.Errorf("got events %q", events)
			}
		})
	}
}

// Between the decision and the action, kubelet may have staged and published the volume for another pod.
func TestMonitor_OrphanThatAPodUsesAgain_IsKept(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	must(t, os.MkdirAll(n.Dirs.Volume("stage-a"), 0o755))
	n.unused(2 * time.Hour)
	asked := false
	n.unstage = func(ctx context.Context, _ staging.Subject, idle func(context.Context) (bool, error)) error {
		n.API.Pods["user"] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "user", UID: "user-uid"},
			Spec: corev1.PodSpec{NodeName: "node", Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
			}}}},
		}
		is, err := idle(ctx)
		if is || err != nil {
			t.Errorf("idle: got %t, %v", is, err)
		}
		asked = true
		return err
	}
	n.restages(nil)
	n.look(t)
	if !asked {
		t.Error("the orphan was not found")
	}
}

// Between the decision and the action, kubelet's call may have staged the volume again. The pod for which it has may not be
// visible yet.
func TestMonitor_OrphanThatKubeletHasCalledFor_IsKept(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	must(t, os.MkdirAll(n.Dirs.Volume("stage-a"), 0o755))
	n.unused(2 * time.Hour)
	asked := 0
	n.unstage = func(ctx context.Context, _ staging.Subject, idle func(context.Context) (bool, error)) error {
		n.callEnded("stage-a")
		is, err := idle(ctx)
		if is || err != nil {
			t.Errorf("idle: got %t, %v", is, err)
		}
		asked++
		return err
	}
	n.restages(nil)
	n.look(t)
	n.look(t)
	if asked != 1 {
		t.Errorf("the orphan was unstaged %d times, want 1, before the call", asked)
	}
}

// A stage that was gone may have been made again by a call that has ended since.
func TestMonitor_CallForAStageThatWasGone_IsNotForgotten(t *testing.T) {
	n := newNode(t)
	gone := n.now()
	n.now = func() time.Time { return gone.Add(time.Second) }
	n.callEnded("stage-a")
	n.forget("stage-a", gone)
	if len(n.calls) != 1 {
		t.Errorf("got the calls %v", n.calls)
	}
	n.forget("stage-a", n.now())
	if len(n.calls) != 0 {
		t.Errorf("of a stage that is gone, got the calls %v", n.calls)
	}
}

func TestMonitor_DirectoryWithoutARecord_IsRemoved_IfKubeletMakesNoCall(t *testing.T) {
	n := newNode(t)
	must(t, n.Dirs.Prepare(t.Context(), "stage-a"))
	n.look(t)
	if exists, err := n.Dirs.Exists(t.Context(), "stage-a"); err != nil || !exists {
		t.Errorf("at once: got %t, %v, want it there", exists, err)
	}
	n.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	n.look(t)
	if exists, err := n.Dirs.Exists(t.Context(), "stage-a"); err != nil || exists {
		t.Errorf("later: got %t, %v, want it gone", exists, err)
	}
	n.callEnded("stage-a")
	n.look(t)
	if len(n.calls)+len(n.orphans)+len(n.deadAt) > 0 || n.health.Knows("stage-a") {
		t.Errorf("something is remembered of a stage that is gone: %v %v %v %t", n.calls, n.orphans, n.deadAt, n.health.Knows("stage-a"))
	}
}

// Kubelet may publish /pav for a pod that it has just evicted, after the directory of the stage was removed. Nobody uses the
// directory that this creates: it is removed when the PavStage is gone.
func TestMonitor_StageThatIsGone_IsCheckedOnceMore(t *testing.T) {
	n := newNode(t)
	stageEvents(staging.NewNotifier(), n.Monitor).OnDelete(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "stage-a"}})
	checked := make(chan string, 1)
	go func() {
		name, _ := n.queue.Get()
		checked <- name
	}()
	select {
	case name := <-checked:
		if name != "stage-a" {
			t.Errorf("stage %q is checked", name)
		}
	case <-time.After(time.Minute):
		t.Error("no stage is checked")
	}
}
