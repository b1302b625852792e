package selftest

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestTroubles_EachFailureIsReportedOnce(t *testing.T) {
	volume := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	first := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowDeletion, PodName: "delete-1", Message: "no"}
	words := first.DeepCopy()
	words.Message = "no: it is needed"
	second := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowDeletion, PodName: "delete-2", Message: "no"}
	creation := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowCreation, PodName: "create-1", Message: "no"}
	troubles := &troubles{reported: map[string]bool{}}
	for i, step := range []struct {
		what      *pavv1.WorkflowFailure
		workflows []string
		fails     bool
	}{
		{what: nil},
		{what: first, fails: true},
		{what: first},
		{what: words},
		{what: creation, workflows: undoing},
		{what: second, workflows: undoing, fails: true},
		{what: &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowDeletion, Message: "refused"}, fails: true},
		{what: &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowDeletion, Message: "refused otherwise"}, fails: true},
	} {
		if err := troubles.check(volume, step.what, step.workflows); (err != nil) != step.fails {
			t.Errorf("check %d: %v", i, err)
		}
	}
}

func TestRace_EndsAllWithTheFirst(t *testing.T) {
	want := errors.New("first")
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := race(t.Context(), waits, func(context.Context) error { return want }, waits); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

func TestPodDone(t *testing.T) {
	ended := func(code int32, message string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}}}
	}
	tests := map[string]struct {
		pod    corev1.Pod
		done   bool
		missed bool
		err    string
	}{
		"yet to run":              {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}},
		"at work":                 {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}},
		"done":                    {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, done: true},
		"done, and holds":         {pod: corev1.Pod{Spec: corev1.PodSpec{InitContainers: make([]corev1.Container, 1)}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}, done: true},
		"failed at the data":      {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: ended(exitMissing, "it is not there\n")}}, missed: true, err: "it is not there"},
		"failed without a word":   {pod: corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: corev1.PodStatus{Phase: corev1.PodFailed, InitContainerStatuses: ended(9, "")}}, err: "pod p failed with exit code 9"},
		"failed for want of room": {pod: corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "no room"}}, err: "Evicted: no room"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			done, err := podDone(&test.pod)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if done != test.done || text != test.err || missed(err) != test.missed {
				t.Errorf("got %v, %v", done, err)
			}
		})
	}
}
