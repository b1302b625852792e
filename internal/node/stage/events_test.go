package stage

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestEvents_ReachTheClaimThatHasTheVolume(t *testing.T) {
	const own, other = "default/claim", "apps/filled"
	tests := map[string]struct {
		change func(*corev1.PersistentVolume) // nil if the volume is gone
		want   string
	}{
		"the volume is gone": {want: own},
		"it is still the stage's claim's": {change: func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "claim", UID: "claim-uid"}
		}, want: own},
		"a populator has given it to another one": {change: func(*corev1.PersistentVolume) {}, want: other},
		"it is no claim's any more":               {change: func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, want: own},
		"it waits for a claim":                    {change: func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }, want: own},
		"one of the name has another handle":      {change: func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "other" }, want: own},
		"one of the name is another driver's":     {change: func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "other" }, want: own},
		"one of the name is no driver's":          {change: func(v *corev1.PersistentVolume) { v.Spec.CSI = nil }, want: own},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			objects, events := &nodetest.API{Volumes: map[string]*corev1.PersistentVolume{}}, make(nodetest.Events, 2)
			if test.change != nil {
				volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
					ClaimRef:               &corev1.ObjectReference{Namespace: "apps", Name: "filled", UID: "filled-uid"},
					PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: "handle"}},
				}}
				test.change(volume)
				objects.Volumes["pv"] = volume
			}
			work := &task{Stager: New(Config{Client: objects, Events: events}), stage: &pavv1.PavStage{Spec: pavv1.PavStageSpec{
				Provisioner: "driver", VolumeName: "pv", VolumeHandle: "handle",
				ClaimRef: pavv1.ClaimReference{Namespace: "default", Name: "claim", UID: "claim-uid"},
			}}}
			work.eventf(t.Context(), corev1.EventTypeWarning, "FailedUnmount", "attempt %d", 2)
			got := []string{<-events, <-events}
			want := []string{"PersistentVolumeClaim " + test.want + ": FailedUnmount: attempt 2", "PavStage: FailedUnmount: attempt 2"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Kubelet asks again and again, and the claim has a budget of events.
func TestUnadmittedPod_IsReportedOnceInAWhile(t *testing.T) {
	n := newNode(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	n.stager.now = func() time.Time { return now }
	work := &task{Stager: n.stager, stage: &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "stage-a"}}}
	n.API.Stages = map[string]*pavv1.PavStage{"stage-a": work.stage.DeepCopy()}
	for _, want := range []int{1, 0, 0} {
		if err := work.created(t.Context(), pavv1.WorkflowStaging, workflow.ErrUnjudged, true); !errors.Is(err, ErrPending) {
			t.Errorf("got %v, want ErrPending", err)
		}
		if got := len(n.Events); got != 2*want {
			t.Errorf("%d events, want %d for the claim and for the PavStage each", got, want)
		}
		for len(n.Events) > 0 {
			<-n.Events
		}
	}
	now = now.Add(observability.RepeatAfter)
	_ = work.created(t.Context(), pavv1.WorkflowStaging, workflow.ErrUnjudged, true)
	if len(n.Events) == 0 {
		t.Error("it is never reported again")
	}
}

// Kubelet repeats its calls every two minutes, and each attempt has another pod.
func TestReportFailure_OfTheSameReason_OnceInAWhile(t *testing.T) {
	n := newNode(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	n.stager.now = func() time.Time { return now }
	work := &task{Stager: n.stager, stage: &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "stage-a"}}}
	fails := func(pod, why string) (events int) {
		work.reportFailure(t.Context(), "FailedMount", "staging on node n1 failed", &pavv1.WorkflowFailure{PodName: pod, Message: "pod pods/" + pod + " failed: " + why})
		for ; len(n.Events) > 0; events++ {
			<-n.Events
		}
		return events
	}
	for i, step := range []struct {
		pod, why string
		after    time.Duration
		want     int
	}{
		{"stage-1", "exit code 1", 0, 2}, // for the claim and for the PavStage
		{"stage-2", "exit code 1", 2 * time.Minute, 0},
		{"stage-3", "exit code 2", 0, 2},
		{"", "no such namespace", 0, 2},
		{"", "no such template", 0, 2},
		{"stage-4", "exit code 1", observability.RepeatAfter, 2},
	} {
		now = now.Add(step.after)
		if got := fails(step.pod, step.why); got != step.want {
			t.Errorf("step %d: %d events, want %d", i, got, step.want)
		}
	}
}
