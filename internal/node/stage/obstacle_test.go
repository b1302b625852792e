package stage

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// A pod whose container fails, runs for long, and fails again: each is reported at its time, and counts from its own begin.
func TestObserveObstacle_OfAPodThatFailsAndRunsForLong(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := start
	s := &Stager{attempts: newAttemptTracker(), now: func() time.Time { return now }}
	work := &task{Stager: s, stage: &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "stage-1"}, Status: pavv1.PavStageStatus{Phase: pavv1.StageUnstaging}}}
	fails := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start)}}
	report := func(reason string) {
		meta.SetStatusCondition(&work.stage.Status.Conditions, metav1.Condition{Type: pavv1.StageReady, Status: metav1.ConditionFalse,
			Reason: reason, Message: observability.Clip(work.cause, observability.MaxCondition)})
		if reason == pavv1.ReasonPodNotStarted {
			s.attempts.change("stage-1", func(known *attemptProblems) { known.reported[work.cause] = true })
		}
	}
	for _, step := range []struct {
		what   string
		at     time.Duration
		state  corev1.ContainerState
		want   observation
		report string
	}{
		{what: "it runs", at: time.Second, state: runs, want: observation{reportIn: 29 * time.Second}},
		{what: "it fails", at: 2 * time.Second, state: fails, want: observation{reportIn: reportDelay}},
		{what: "it still fails", at: 6 * time.Second, state: fails, want: observation{reportDue: true}, report: pavv1.ReasonPodNotStarted},
		{what: "that is reported", at: 7 * time.Second, state: fails, want: observation{reported: true}},
		{what: "it runs again", at: 10 * time.Second, state: runs, want: observation{reported: true, reportIn: 20 * time.Second}},
		{what: "it has run for long", at: 10 * time.Minute, state: runs, want: observation{reportDue: true}, report: pavv1.ReasonPodRunsLong},
		{what: "that is reported, too", at: 11 * time.Minute, state: runs, want: observation{reported: true}},
		{what: "it fails again", at: 12 * time.Minute, state: fails, want: observation{reported: true, reportIn: 0}},
		{what: "it has failed for four minutes", at: 16 * time.Minute, state: fails, want: observation{reported: true}},
		{what: "it has failed for five minutes", at: 17 * time.Minute, state: fails, want: observation{reported: true, stuck: true}},
	} {
		now = start.Add(step.at)
		work.unstagingPod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "unstage-1", UID: "u1"}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: step.state}}}}
		o := observation{phase: pavv1.StageUnstaging}
		work.observeObstacle(&o)
		step.want.phase = o.phase
		if o != step.want {
			t.Errorf("%s: got %+v, want %+v", step.what, o, step.want)
		}
		if step.report != "" {
			report(step.report)
		}
	}
}
