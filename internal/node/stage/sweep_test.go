package stage

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
)

func TestKeeper_UnstagesOrphans(t *testing.T) {
	later := func(_ *testing.T, n *testNode) { n.now = func() time.Time { return time.Now().Add(2 * time.Hour) } }
	user := func(phase corev1.PodPhase, volume corev1.VolumeSource) func(*testing.T, *testNode) {
		return func(_ *testing.T, n *testNode) {
			n.api.pods["user"] = &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "user", UID: "user-uid"},
				Spec:       corev1.PodSpec{NodeName: "node", Volumes: []corev1.Volume{{Name: "data", VolumeSource: volume}}},
				Status:     corev1.PodStatus{Phase: phase},
			}
		}
	}
	phase := func(phase pavv1.StagePhase) func(*testing.T, *testNode) {
		return func(_ *testing.T, n *testNode) { n.api.stages["stage-a"].Status.Phase = phase }
	}
	ofClaim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	folder := func(uid types.UID) func(*testing.T, *testNode) {
		return func(t *testing.T, n *testNode) {
			t.Helper()
			n.podFolder(t, uid)
		}
	}
	ofClient := func(_ *testing.T, n *testNode) {
		n.api.stages["stage-a"].Spec.Scope = pavv1.StagingScopePod
		n.api.stages["stage-a"].Spec.Client = &pavv1.StageClient{Namespace: "default", Name: "user", UID: "user-uid", Target: "/target"}
	}
	const unstaged, unpublished = "handle ", "handle /target"
	tests := map[string]struct {
		when []func(*testing.T, *testNode)
		want string
	}{
		"kubelet is given time":              {nil, ""},
		"nobody uses it":                     {when: []func(*testing.T, *testNode){later}, want: unstaged},
		"nobody uses it, and staging hangs":  {when: []func(*testing.T, *testNode){later, phase(pavv1.StageStaging)}, want: unstaged},
		"nobody uses it, unstaging began":    {when: []func(*testing.T, *testNode){later, phase(pavv1.StageUnstaging)}, want: unstaged},
		"nobody uses it, it is validated":    {when: []func(*testing.T, *testNode){later, phase(pavv1.StageValidating)}, want: unstaged},
		"it is being staged anew for nobody": {when: []func(*testing.T, *testNode){later, func(_ *testing.T, n *testNode) { n.api.stages["stage-a"].Status.Restaging = true }}, want: unstaged},
		"it is the record of a failure": {when: []func(*testing.T, *testNode){later, phase(pavv1.StageFailed), func(_ *testing.T, n *testNode) {
			n.api.stages["stage-a"].Finalizers = nil
		}}, want: ""},
		"kubelet has just called": {when: []func(*testing.T, *testNode){func(_ *testing.T, n *testNode) {
			now := time.Now().Add(2 * time.Hour)
			n.now = func() time.Time { return now }
			n.called("stage-a")
		}}, want: ""},
		"a pod has its claim":         {when: []func(*testing.T, *testNode){later, user(corev1.PodPending, ofClaim("claim"))}, want: ""},
		"a pod has another claim":     {when: []func(*testing.T, *testNode){later, user(corev1.PodRunning, ofClaim("other"))}, want: unstaged},
		"the pod that had it is over": {when: []func(*testing.T, *testNode){later, user(corev1.PodSucceeded, ofClaim("claim"))}, want: unstaged},
		"a pod has it by its template": {when: []func(*testing.T, *testNode){later, user(corev1.PodRunning, corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
			func(_ *testing.T, n *testNode) { n.api.stages["stage-a"].Spec.ClaimRef.Name = "user-data" }}, want: ""},
		"kubelet has the folder of a pod that the API server has forgotten": {when: []func(*testing.T, *testNode){later,
			folder("forgotten")}, want: ""},
		"it is published": {when: []func(*testing.T, *testNode){later, func(t *testing.T, n *testNode) { t.Helper(); n.attach(t) }}, want: ""},
		"a client's stage, and the pod is there": {when: []func(*testing.T, *testNode){later, ofClient,
			user(corev1.PodRunning, ofClaim("claim"))}, want: ""},
		"a client's stage, and only another pod has the volume": {when: []func(*testing.T, *testNode){later, ofClient,
			folder("other")}, want: unpublished},
		"a client's stage, whose pod's folder is there": {when: []func(*testing.T, *testNode){later, ofClient,
			folder("user-uid")}, want: ""},
		"the PavStage is gone, and its folder is not": {when: []func(*testing.T, *testNode){later,
			func(_ *testing.T, n *testNode) { delete(n.api.stages, "stage-a") }}, want: unstaged},
		"the PavStage is another node's, and the folder is here": {when: []func(*testing.T, *testNode){later,
			func(_ *testing.T, n *testNode) { n.api.stages["stage-a"].Spec.NodeName = "other" }}, want: unstaged},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.stage(t, func(*pavv1.PavStage) {})
			must(t, os.MkdirAll(n.dirs.Volume("stage-a"), 0o755))
			got := ""
			n.unstage = func(ctx context.Context, of subject, idle func(context.Context) (bool, error)) error {
				is, err := idle(ctx)
				if is {
					got += of.Handle + " " + of.target
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

// Between the decision and the act kubelet may have staged and published the volume for another pod.
func TestKeeper_OrphanThatAPodHasMeanwhile_IsLeftAlone(t *testing.T) {
	n := newNode(t)
	n.stage(t, func(*pavv1.PavStage) {})
	must(t, os.MkdirAll(n.dirs.Volume("stage-a"), 0o755))
	n.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	asked := false
	n.unstage = func(ctx context.Context, _ subject, idle func(context.Context) (bool, error)) error {
		n.api.pods["user"] = &corev1.Pod{
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

func TestUnstageOrphan_AsksOnceMoreBeforeItActs(t *testing.T) {
	n := newNode(t)
	v := n.staged(t)
	name, _ := n.stager.names(v)
	must(t, n.stager.unstageOrphan(t.Context(), subject{Volume: v}, func(context.Context) (bool, error) { return false, nil }))
	attached, err := n.dirs.Attached(t.Context(), name)
	must(t, err)
	if !attached {
		t.Error("a volume in use was unstaged")
	}
}

func TestKeeper_FolderWithoutARecord_Goes_WhenKubeletHasSaidNothing(t *testing.T) {
	n := newNode(t)
	must(t, n.dirs.Prepare(t.Context(), "stage-a"))
	n.look(t)
	if exists, err := n.dirs.Exists(t.Context(), "stage-a"); err != nil || !exists {
		t.Errorf("at once: got %t, %v, want it there", exists, err)
	}
	n.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	n.look(t)
	if exists, err := n.dirs.Exists(t.Context(), "stage-a"); err != nil || exists {
		t.Errorf("later: got %t, %v, want it gone", exists, err)
	}
	n.called("stage-a")
	n.look(t)
	if len(n.calls)+len(n.orphans)+len(n.deadAt) > 0 || n.health.Knows("stage-a") {
		t.Errorf("something is remembered of a stage that is gone: %v %v %v %t", n.calls, n.orphans, n.deadAt, n.health.Knows("stage-a"))
	}
}

func TestNeeds_ThePodsWhoseOutcomeIsNotOnRecord(t *testing.T) {
	ref := func(name string) *pavv1.PodReference { return &pavv1.PodReference{Namespace: "pav-pods", Name: name} }
	status := &pavv1.PavStageStatus{ValidationPod: ref("validate-1"), StagingPod: ref("stage-2"), UnstagingPod: ref("unstage-3")}
	tests := map[string]struct {
		pod       string
		validated bool
		want      bool
	}{
		"the staging pod":                    {pod: "stage-2", want: true},
		"one of an earlier attempt":          {pod: "stage-1", want: false},
		"the unstaging pod":                  {pod: "unstage-3", want: true},
		"the validation pod":                 {pod: "validate-1", want: true},
		"one that has found the volume good": {pod: "validate-1", validated: true, want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status.Validated = test.validated
			if got := needs(status, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pav-pods", Name: test.pod}}); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
