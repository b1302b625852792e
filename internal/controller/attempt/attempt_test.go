package attempt

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(-time.Duration(seconds) * time.Second))
}

// state is an Attempt under construction.
type state struct{ Attempt }

// intended returns an attempt whose pod is recorded and not created.
func intended() *state {
	return &state{Attempt{Now: noon, Ref: &pavv1.PodReference{Namespace: "pav-pods", Name: "pod"}, Object: "pavvolume/pvc-1", Step: "Creating", Doing: "is creating the volume"}}
}

func (s *state) with(changes ...func(*Attempt)) *state {
	for _, change := range changes {
		change(&s.Attempt)
	}
	return s
}

// pod adds the pod of the attempt, which was created on node n1 this many seconds ago.
func (s *state) pod(age int, changes ...func(*corev1.Pod)) *state {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pav-pods", Name: "pod", UID: "u-pod", CreationTimestamp: ago(age)},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, change := range changes {
		change(&pod)
	}
	s.Ref.UID, s.Pods = pod.UID, []corev1.Pod{pod}
	return s
}

func contended(a *Attempt) { a.Contended = true }

func selectedNode(a *Attempt) { a.SelectedNode = true }

func needsResult(a *Attempt) { a.NeedsResult = true }

func recordedAs(uid string) func(*Attempt) {
	return func(a *Attempt) { a.Ref.UID = types.UID(uid) }
}

func running(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

// ended puts a pod in a phase in which it has ended. Its container ended this many seconds ago.
func ended(phase corev1.PodPhase, seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		code := int32(0)
		if phase == corev1.PodFailed {
			code = 3
		}
		pod.Status.Phase = phase
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: ago(seconds)},
		}}}
	}
}

// reports gives a pod a result that its node reported.
func reports(result string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{pavv1.ResultAnnotation: result} }
}

// deleted marks a pod as being deleted, with a grace period in seconds, which ended this many seconds ago.
func deleted(ended int, grace int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(ago(ended)), &grace }
}

func imageFails(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"},
	}}}
}

func crashes(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	}}
}

// mountFails sets the status of a pod whose kubelet cannot mount a volume. pulling sets that of a pod whose images are
// being pulled.
func mountFails(pod *corev1.Pod) { readyToStart(pod, corev1.ConditionFalse) }

func pulling(pod *corev1.Pod) { readyToStart(pod, corev1.ConditionTrue) }

func readyToStart(pod *corev1.Pod, status corev1.ConditionStatus) {
	pod.Status.StartTime = &pod.CreationTimestamp
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: status}}
}

// seen sets the status of a pod that its kubelet has seen, for kubelets without the condition
// PodReadyToStartContainers.
func seen(pod *corev1.Pod) { pod.Status.StartTime = &pod.CreationTimestamp }

// bound records that a pod was bound to its node this many seconds ago.
func bound(seconds int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: ago(seconds)})
	}
}

func unscheduled(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available"}}
}

func TestProgress(t *testing.T) {
	const succeeded, failed = corev1.PodSucceeded, corev1.PodFailed
	tests := map[string]struct {
		state *state
		want  Progress
	}{
		"no pod is recorded":                           {state: &state{Attempt{Now: noon}}, want: None},
		"the pod is recorded":                          {state: intended(), want: Intended},
		"the pod is created and not recorded as such":  {state: intended().pod(1).with(recordedAs("")), want: Running},
		"the pod is pending":                           {state: intended().pod(1), want: Running},
		"the pod runs":                                 {state: intended().pod(1, running), want: Running},
		"the pod is being deleted":                     {state: intended().pod(9, running, deleted(1, 30)), want: Stopping},
		"the pod succeeded":                            {state: intended().pod(9, ended(succeeded, 1)), want: Succeeded},
		"the pod succeeded, and its result matters":    {state: intended().with(needsResult).pod(9, ended(succeeded, 999)), want: Reporting},
		"its result is reported":                       {state: intended().with(needsResult).pod(9, ended(succeeded, 1), reports("{}")), want: Succeeded},
		"the pod failed a moment ago":                  {state: intended().pod(9, ended(failed, 4)), want: Reporting},
		"the pod failed, and the node reported":        {state: intended().pod(9, ended(failed, 1), reports("{}")), want: Failed},
		"the pod failed, and the node reports nothing": {state: intended().pod(9, ended(failed, 5)), want: Failed},
		"the clock of the node is ahead":               {state: intended().pod(9, ended(failed, -3600)), want: Failed},
		"the pod was deleted before it succeeded":      {state: intended().pod(9, ended(succeeded, 1), reports("{}"), deleted(3, 0)), want: Failed},
		"the pod is gone":                              {state: intended().with(recordedAs("u-pod")), want: Vanished},
		"another pod has its name":                     {state: intended().pod(9, running).with(recordedAs("u-other")), want: Vanished},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.state.Progress()
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if begun := test.state.HasBegun(); begun != (got != None && got != Intended) {
				t.Errorf("has begun: got %t", begun)
			}
		})
	}
}

func TestIsUnrecorded(t *testing.T) {
	for name, test := range map[string]struct {
		state *state
		want  bool
	}{
		"the pod does not exist":         {state: intended()},
		"the pod exists":                 {state: intended().pod(1).with(recordedAs("")), want: true},
		"the pod is recorded as created": {state: intended().pod(1)},
		"no pod is recorded":             {state: &state{Attempt{Now: noon}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.state.IsUnrecorded(); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestLateFailure(t *testing.T) {
	const failed = corev1.PodFailed
	// recorded returns the pods and the recorded failure of an attempt. The pod got the earlier changes before its
	// failure was recorded, and the other changes after it.
	recorded := func(earlier []func(*corev1.Pod), changes ...func(*corev1.Pod)) ([]corev1.Pod, *pavv1.WorkflowFailure) {
		s := intended().pod(9, append([]func(*corev1.Pod){ended(failed, 6)}, earlier...)...)
		failure := s.Failure("create")
		failure.Time, failure.NextAttemptTime = ago(1), new(ago(-3))
		for _, change := range changes {
			change(&s.Pods[0])
		}
		return s.Pods, failure
	}
	text := reports(`{"error": "no room"}`)
	for name, test := range map[string]struct {
		earlier, changes []func(*corev1.Pod)
		message          string // message of the recorded failure; empty for that of the pod
		want             string
	}{
		"the node has reported nothing":                {},
		"the node reports a text":                      {changes: []func(*corev1.Pod){text}, want: "exit code 3: no room; see"},
		"the text is recorded already":                 {earlier: []func(*corev1.Pod){text}},
		"the node reports no text":                     {changes: []func(*corev1.Pod){reports("{}")}},
		"the report cannot be read":                    {changes: []func(*corev1.Pod){reports("no JSON")}},
		"the text is long":                             {changes: []func(*corev1.Pod){reports(`{"error": "` + strings.Repeat("x", 9000) + `"}`)}, want: "xxx"},
		"the report is another pod's":                  {changes: []func(*corev1.Pod){text, func(pod *corev1.Pod) { pod.Name = "next" }}},
		"the pod has succeeded":                        {changes: []func(*corev1.Pod){text, ended(corev1.PodSucceeded, 6)}},
		"the recorded failure is not that of this pod": {changes: []func(*corev1.Pod){text}, message: "/pav/handle is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			pods, failure := recorded(test.earlier, test.changes...)
			if test.message != "" {
				failure.Message = test.message
			}
			got := LateFailure(pods, nil, failure)
			if test.want == "" {
				if got != nil {
					t.Errorf("got %+v, want nothing", got)
				}
				return
			}
			if got == nil || !strings.Contains(got.Message, test.want) || !got.Time.Equal(new(ago(1))) || !got.NextAttemptTime.Equal(new(ago(-3))) {
				t.Fatalf("got %+v, want %q", got, test.want)
			}
			if again := LateFailure(pods, got); again != nil {
				t.Errorf("once recorded, it is late again: %+v", again)
			}
		})
	}
}

func TestFailure_OfAPodRemovedByForce(t *testing.T) {
	got := intended().with(recordedAs("u-pod")).Failure("delete")
	if got.Workflow != "delete" || got.PodNamespace != "pav-pods" || got.PodName != "pod" ||
		got.Reason != pavv1.FailurePodRemoved || !strings.Contains(got.Message, "removed by force") {
		t.Errorf("got %+v", got)
	}
}

func TestFailure_OfAPodStoppedByARetry_IsNoneOfTheScript(t *testing.T) {
	retried := func(a *Attempt) { a.Retried = true }
	failed := ended(corev1.PodFailed, 1)
	for name, test := range map[string]struct {
		state *state
		want  pavv1.FailureReason
	}{
		"stopped by a retry":                {state: intended().with(retried).pod(9, failed, deleted(1, 0)), want: pavv1.FailurePodStopped},
		"deleted by another":                {state: intended().pod(9, failed, deleted(1, 0)), want: pavv1.FailurePodFailed},
		"failed by itself before the retry": {state: intended().with(retried).pod(9, failed), want: pavv1.FailurePodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.state.Failure("create"); got.Reason != test.want {
				t.Errorf("got %s, want %s", got.Reason, test.want)
			}
		})
	}
}

// The promise of a pod that it has changed nothing is believed only of a pod that failed by itself, and named no storage.
func TestFailure_OfAPodThatCallsItInfeasible(t *testing.T) {
	failed := ended(corev1.PodFailed, 9)
	evicted := func(pod *corev1.Pod) { pod.Status.Reason = "Evicted" }
	killed := func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled" }
	for name, test := range map[string]struct {
		changes []func(*corev1.Pod)
		want    pavv1.FailureReason
		message string
	}{
		"with a reason":              {[]func(*corev1.Pod){reports(`{"infeasible": "too large"}`)}, pavv1.FailureInfeasible, ": too large; see"},
		"without one":                {[]func(*corev1.Pod){reports(`{"infeasible": ""}`)}, pavv1.FailureInfeasible, "; see"},
		"without one, and an error":  {[]func(*corev1.Pod){reports(`{"infeasible": "", "error": "why"}`)}, pavv1.FailureInfeasible, ": why; see"},
		"with a reason and an error": {[]func(*corev1.Pod){reports(`{"infeasible": "too large", "error": "why"}`)}, pavv1.FailureInfeasible, ": too large; why; see"},
		"the same text in both":      {[]func(*corev1.Pod){reports(`{"infeasible": "why", "error": "why"}`)}, pavv1.FailureInfeasible, ": why; see"},
		"no such file":               {[]func(*corev1.Pod){reports(`{"error": "why"}`)}, pavv1.FailurePodFailed, ": why; see"},
		"not reported":               {nil, pavv1.FailurePodFailed, ""},
		"no JSON":                    {[]func(*corev1.Pod){reports(`infeasible`)}, pavv1.FailurePodFailed, ""},
		"it named storage":           {[]func(*corev1.Pod){reports(`{"infeasible": "why", "handle": "h"}`)}, pavv1.FailurePodFailed, ""},
		"it was ready before":        {[]func(*corev1.Pod){reports(`{"infeasible": "why", "ready": true}`)}, pavv1.FailurePodFailed, ""},
		"it was evicted":             {[]func(*corev1.Pod){reports(`{"infeasible": "why"}`), evicted}, pavv1.FailurePodFailed, ""},
		"it was killed":              {[]func(*corev1.Pod){reports(`{"infeasible": "why"}`), killed}, pavv1.FailurePodFailed, ""},
		"it was deleted":             {[]func(*corev1.Pod){reports(`{"infeasible": "why"}`), deleted(1, 0)}, pavv1.FailurePodFailed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := intended().pod(20, append([]func(*corev1.Pod){failed}, test.changes...)...).Failure("create")
			if got.Reason != test.want || !strings.Contains(got.Message, test.message) {
				t.Errorf("got %s, %q; want %s, %q", got.Reason, got.Message, test.want, test.message)
			}
		})
	}
}

func TestIsKept(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "failed"}}
	failure := &pavv1.WorkflowFailure{PodNamespace: "ns", PodName: "failed"}
	for name, test := range map[string]struct {
		failure  *pavv1.WorkflowFailure
		replaced bool
		want     bool
	}{
		"the last pod that failed":        {failure: failure, want: true},
		"the next pod is recorded":        {failure: failure, replaced: true},
		"no failure is recorded":          {},
		"another pod failed after it":     {failure: &pavv1.WorkflowFailure{PodNamespace: "ns", PodName: "later"}},
		"the name is in other namespaces": {failure: &pavv1.WorkflowFailure{PodNamespace: "other", PodName: "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsKept(pod, test.failure, test.replaced); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
