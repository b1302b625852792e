package status

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// What hangs or is broken is neither HEALTHY nor WORKING, whatever pod there is or is not, and whatever the user may read.
func TestDiagnose_OfWhatHangs(t *testing.T) {
	notReady := func(reason, message string) func(*pavv1.PavStage) {
		return func(s *pavv1.PavStage) {
			s.Status.Phase = pavv1.StageStaging
			s.Status.Conditions = []metav1.Condition{{Type: pavv1.StageReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
		}
	}
	noPods := func(f *Facts) { f.Hidden = append(f.Hidden, hiddenPods) }
	unstaging := func(s *pavv1.PavStage) {
		s.Status.Phase = pavv1.StageUnstaging
		s.Status.StagingPod = &pavv1.PodReference{Namespace: "pav-pods", Name: "stage-1"}
	}
	overFor := func(age time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodSucceeded
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{StartedAt: *at(-age), FinishedAt: *at(-age)}}}}
		}
	}
	stoppingSince := func(end time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			runningSince(-time.Hour)(pod)
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = at(end), new(int64(30))
		}
	}
	client := func() *world { return bound().client("web", "n1") }
	for name, test := range map[string]struct {
		facts *world
		state State
		code  string
		text  string // a part of the summary, the reason or a command
	}{
		"no pod, as nobody admits it":         {client().stage("n1", notReady("PodNotAdmitted", "the webhook does not answer")), Failing, "PodNotAdmitted", "get deployment controller-agent"},
		"no pod, as the node is full":         {client().stage("n1", notReady("PodNotStarted", "node n1 has no room")), Failing, "PodNotStarted", "has no room"},
		"a hidden staging pod hangs":          {client().with(noPods).stage("n1", notReady("PodRunsLong", "it has run for 30s")), Slow, "PodRunsLong", "kubectl pav retry"},
		"a hidden creation pod hangs":         {making(pavv1.StepCreating).with(noPods).with(func(f *Facts) { condition(f, pavv1.VolumeProvisioned, "PodRunsLong", "it has run for 30s") }), Slow, "PodRunsLong", "30s"},
		"a hidden creation pod does not stop": {making(pavv1.StepCreating).with(noPods).with(func(f *Facts) { condition(f, pavv1.VolumeProvisioned, "PodStopping", "it is stopped") }), Failing, "PodStopping", "stopped"},
		"a staging pod does not stop":         {client().stage("n1", unstaging).pod("stage-1", pavv1.WorkflowStaging, stoppingSince(-time.Hour)), Failing, "RunsLong", "is being stopped (for 1h)"},
		"a pod stops":                         {client().stage("n1", unstaging).pod("stage-1", pavv1.WorkflowStaging, stoppingSince(20*time.Second)), Working, "Working", "is being stopped"},
		"an outcome is not recorded":          {making(pavv1.StepCreating).pod("create-1", pavv1.WorkflowCreation, overFor(time.Hour)), Failing, "RunsLong", "about to be recorded (for 1h)"},
		"an outcome is about to be recorded":  {making(pavv1.StepCreating).pod("create-1", pavv1.WorkflowCreation, overFor(time.Second)), Working, "Working", "about to be recorded"},
		"a pod hangs after one that failed": {client().stage("n1", func(s *pavv1.PavStage) {
			staging(s)
			s.Status.Attempt, s.Status.StagingFailure = 3, &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, PodNamespace: "pav-pods", PodName: "stage-0", Message: "m"}
		}).pod("stage-1", pavv1.WorkflowStaging, runningSince(-time.Minute)), Failing, "StagingFailed", "kubectl pav retry"},
	} {
		t.Run(name, func(t *testing.T) {
			found := Build(test.facts.f).Findings[0]
			text := found.Summary + " " + found.Reason
			for _, step := range found.Next {
				text += " " + step.Command
			}
			if found.State != test.state || found.Code != test.code || !strings.Contains(text, test.text) {
				t.Errorf("got %s, %s: %q, want %s, %s: %q", found.State, found.Code, text, test.state, test.code, test.text)
			}
		})
	}
}
