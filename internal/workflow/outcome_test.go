package workflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestObserve(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		phase     corev1.PodPhase
		deleted   bool
		unbound   bool
		condition corev1.PodConditionType
		want      State
	}{
		"a pod that is not scheduled yet may run yet":                      {phase: corev1.PodPending, unbound: true, want: Running},
		"a pod that is not started yet may run yet":                        {phase: corev1.PodPending, want: Running},
		"a pod without a phase may run yet":                                {want: Running},
		"a running pod runs":                                               {phase: corev1.PodRunning, want: Running},
		"a pod whose node is lost may still run":                           {phase: corev1.PodUnknown, want: Running},
		"a pod that ended well has succeeded":                              {phase: corev1.PodSucceeded, want: Succeeded},
		"a pod that ended badly has failed":                                {phase: corev1.PodFailed, want: Failed},
		"a deleted pod that runs is stopping":                              {phase: corev1.PodRunning, deleted: true, want: Stopping},
		"a deleted pod that is bound may still be started":                 {phase: corev1.PodPending, deleted: true, want: Stopping},
		"a deleted pod whose node is lost may still run":                   {phase: corev1.PodUnknown, deleted: true, want: Stopping},
		"a deleted pod that was never bound has not run, and has failed":   {phase: corev1.PodPending, deleted: true, unbound: true, want: Failed},
		"a deleted pod has failed, also if it made an exit code 0 of that": {phase: corev1.PodSucceeded, deleted: true, want: Failed},
		"a deleted pod that ended badly has failed":                        {phase: corev1.PodFailed, deleted: true, want: Failed},
		"a pod that is to be disrupted runs until it is deleted":           {phase: corev1.PodRunning, condition: corev1.DisruptionTarget, want: Running},
		"a pod that was disrupted has failed":                              {phase: corev1.PodFailed, condition: corev1.DisruptionTarget, want: Failed},
		"a pod that ended well before it was disrupted has succeeded":      {phase: corev1.PodSucceeded, condition: corev1.DisruptionTarget, want: Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node"}, Status: corev1.PodStatus{Phase: test.phase}}
			if test.deleted {
				pod.DeletionTimestamp = &now
			}
			if test.unbound {
				pod.Spec.NodeName = ""
			}
			if test.condition != "" {
				pod.Status.Conditions = []corev1.PodCondition{{Type: test.condition, Status: corev1.ConditionTrue}}
			}
			if got := Observe(pod); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
	if got := Observe(nil); got != Absent {
		t.Errorf("a pod that does not exist is %d, want %d", got, Absent)
	}
}

// ended returns the status of a container that ended.
func ended(name string, code int32, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message},
	}}
}

func TestFailure(t *testing.T) {
	const logs = "; see kubectl logs -n ns stage-1 --all-containers"
	for name, test := range map[string]struct {
		status   corev1.PodStatus
		podError string
		want     string
		code     *int32
		log      string
	}{
		"where nothing is known": {want: "pod ns/stage-1 failed" + logs},
		"where the pod was evicted": {
			status: corev1.PodStatus{Reason: "Evicted", Message: "The node was low on memory."},
			want:   "pod ns/stage-1 failed: Evicted The node was low on memory." + logs,
		},
		"where the pod was evicted while a container ran": {
			status: corev1.PodStatus{Reason: "Evicted", Message: "The node was low on memory.", ContainerStatuses: []corev1.ContainerStatus{ended("main", 137, "Error", "")}},
			want:   `pod ns/stage-1 failed: Evicted The node was low on memory.; container "main" ended with exit code 137` + logs, code: new(int32(137)),
		},
		"where a reason has no message": {status: corev1.PodStatus{Reason: "Evicted"}, want: "pod ns/stage-1 failed: Evicted" + logs},
		"where the pod said why": {
			status:   corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("main", 3, "Error", "last line")}},
			podError: " the backend is on fire\n",
			want:     `pod ns/stage-1 failed: container "main" ended with exit code 3: the backend is on fire` + logs, code: new(int32(3)), log: "last line",
		},
		"where there is only a log": {
			status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("main", 1, "", "one\ntwo\r\n\nthree\n")}},
			want:   `pod ns/stage-1 failed: container "main" ended with exit code 1` + logs, code: new(int32(1)), log: "one | two | three",
		},
		"where the container was killed": {
			status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("main", 137, "OOMKilled", "")}},
			want:   `pod ns/stage-1 failed: container "main" ended with exit code 137 (OOMKilled)` + logs, code: new(int32(137)),
		},
		"where an init container failed, which comes first": {
			status: corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{ended("init-1", 0, "Completed", ""), ended("init-2", 2, "Error", "")},
				ContainerStatuses:     []corev1.ContainerStatus{ended("main", 1, "Error", "")},
			},
			want: `pod ns/stage-1 failed: container "init-2" ended with exit code 2` + logs, code: new(int32(2)),
		},
		"where one of two containers failed": {
			status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("fine", 0, "Completed", "not this"), ended("main", 4, "Error", "this")}},
			want:   `pod ns/stage-1 failed: container "main" ended with exit code 4` + logs, code: new(int32(4)), log: "this",
		},
		"where a stopped pod made an exit code 0 of that": {
			status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{ended("main", 0, "Completed", "")}},
			want:   "pod ns/stage-1 failed" + logs,
		},
		"where the pod said why although no container failed": {podError: "why", want: "pod ns/stage-1 failed: why" + logs},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "stage-1"}, Status: test.status}
			want := &pavv1.WorkflowFailure{Workflow: "stage", Reason: pavv1.FailurePodFailed, PodNamespace: "ns", PodName: "stage-1", ExitCode: test.code, Message: test.want, Log: test.log}
			got := Failure("stage", pod, test.podError)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the failure (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailure_KeepsTheEndOfALongLog_AndItIsValid(t *testing.T) {
	for name, log := range map[string]string{
		"a long line":            strings.Repeat("x", 4000) + "the end",
		"characters of 3 bytes":  strings.Repeat("€", 2000) + "the end",
		"bytes that are no text": strings.Repeat("\xffx", 2000) + "the end",
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("main", 1, "", log)}}}
			failure := Failure("stage", pod, "")
			if kept := failure.Log; !strings.HasSuffix(kept, "the end") || !strings.HasPrefix(kept, "…") || len(kept) > maxWords || strings.ToValidUTF8(kept, "") != kept {
				t.Errorf("%d bytes: %q", len(kept), kept)
			}
			if strings.Contains(failure.Message, "the end") {
				t.Errorf("the message, which users of claims read, has what the pod logged: %q", failure.Message)
			}
		})
	}
}

func TestFailure_IsOfBoundedLength_AndValid(t *testing.T) {
	for name, test := range map[string]struct {
		status   corev1.PodStatus
		podError string
		limit    int
	}{
		"a long reason of the kubelet's": {status: corev1.PodStatus{Reason: "Evicted", Message: strings.Repeat("€", 4000)}, limit: 700},
		"what the pod said":              {podError: strings.Repeat("€", 1<<16), limit: MaxError + 200},
		"bytes that the pod said":        {podError: strings.Repeat("\xffx", 1<<16), limit: MaxError + 200},
	} {
		t.Run(name, func(t *testing.T) {
			message := Failure("stage", &corev1.Pod{Status: test.status}, test.podError).Message
			if len(message) > test.limit || strings.ToValidUTF8(message, "") != message || !strings.Contains(message, "…") {
				t.Errorf("%d bytes: %q", len(message), message)
			}
		})
	}
}

// waiting returns the status of a container that waits.
func waiting(reason, message string) []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
}

// again returns the status of a container that is restarted after it ended.
func again(message string, last corev1.ContainerStatus) []corev1.ContainerStatus {
	statuses := waiting("CrashLoopBackOff", message)
	statuses[0].LastTerminationState = last.State
	return statuses
}

func TestWaiting(t *testing.T) {
	unscheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available"}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"nothing keeps a running pod":       {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}, ""},
		"being created is no obstacle":      {corev1.PodStatus{ContainerStatuses: waiting("ContainerCreating", "")}, ""},
		"waiting for init containers isn't": {corev1.PodStatus{ContainerStatuses: waiting("PodInitializing", "")}, ""},
		"a pod that fits no node":           {corev1.PodStatus{Conditions: []corev1.PodCondition{unscheduled}}, "pod ns/stage-1 is not scheduled: 0/2 nodes are available"},
		"an image that cannot be pulled":    {corev1.PodStatus{ContainerStatuses: waiting("ImagePullBackOff", "no such image")}, `pod ns/stage-1, container "main": ImagePullBackOff: no such image`},
		"no reason is no obstacle":          {corev1.PodStatus{ContainerStatuses: waiting("", "")}, ""},
		"an image of an impossible name":    {corev1.PodStatus{ContainerStatuses: waiting("InvalidImageName", "couldn't parse")}, `pod ns/stage-1, container "main": InvalidImageName: couldn't parse`},
		"an image that is not there":        {corev1.PodStatus{ContainerStatuses: waiting("ErrImageNeverPull", "not present")}, `pod ns/stage-1, container "main": ErrImageNeverPull: not present`},
		"a secret that is missing":          {corev1.PodStatus{ContainerStatuses: waiting("CreateContainerConfigError", `secret "x" not found`)}, `pod ns/stage-1, container "main": CreateContainerConfigError: secret "x" not found`},
		"a container that is refused":       {corev1.PodStatus{ContainerStatuses: waiting("CreateContainerError", "no command\nspecified\n")}, `pod ns/stage-1, container "main": CreateContainerError: no command | specified`},
		"a program that is not there":       {corev1.PodStatus{ContainerStatuses: waiting("RunContainerError", "no such file")}, `pod ns/stage-1, container "main": RunContainerError: no such file`},
		"a container that fails and fails":  {corev1.PodStatus{ContainerStatuses: again("back-off 10s", ended("", 3, "Error", "one\ntwo\n"))}, `pod ns/stage-1, container "main": CrashLoopBackOff: back-off 10s; it ended with exit code 3`},
		"one that is killed, and silent":    {corev1.PodStatus{ContainerStatuses: again("", ended("", 137, "OOMKilled", ""))}, `pod ns/stage-1, container "main": CrashLoopBackOff; it ended with exit code 137 (OOMKilled)`},
		"the second of two containers":      {corev1.PodStatus{ContainerStatuses: append(waiting("ContainerCreating", ""), waiting("ErrImagePull", "denied")...)}, `pod ns/stage-1, container "main": ErrImagePull: denied`},
		"a reason without a message":        {corev1.PodStatus{InitContainerStatuses: waiting("CrashLoopBackOff", "")}, `pod ns/stage-1, container "main": CrashLoopBackOff`},
		"a pod that is scheduled":           {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "stage-1"}, Status: test.status}
			if got := Waiting(pod); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWaiting_KeepsBothEndsOfALongMessage_AndItIsValid(t *testing.T) {
	long := "beginning " + strings.Repeat("€", 4000) + " end"
	for name, status := range map[string]corev1.PodStatus{
		"a container's":   {ContainerStatuses: waiting("ErrImagePull", long)},
		"the scheduler's": {Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: long}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Waiting(&corev1.Pod{Status: status})
			if len(got) > 600 || strings.ToValidUTF8(got, "") != got || !strings.Contains(got, "beginning") || !strings.HasSuffix(got, "€ end") {
				t.Errorf("%d bytes: %q", len(got), got)
			}
		})
	}
}

func TestStarted(t *testing.T) {
	running := []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	over := []corev1.ContainerStatus{ended("main", 0, "Completed", "")}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"a pod of which nothing is known":                {corev1.PodStatus{}, false},
		"a pod that waits for its containers":            {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: waiting("PodInitializing", ""), ContainerStatuses: waiting("PodInitializing", "")}, false},
		"a pod whose image is missing":                   {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("ErrImagePull", "")}, false},
		"a pod that its kubelet refused":                 {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeAffinity"}, false},
		"a pod whose init container runs":                {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: running, ContainerStatuses: waiting("PodInitializing", "")}, true},
		"a pod whose init container has run":             {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: over, ContainerStatuses: waiting("ErrImagePull", "")}, true},
		"a running container":                            {corev1.PodStatus{ContainerStatuses: running}, true},
		"one of two containers":                          {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: append(waiting("ErrImagePull", ""), running...)}, true},
		"a container that failed":                        {corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("main", 1, "Error", "")}}, true},
		"a container that is to be started again":        {corev1.PodStatus{ContainerStatuses: again("", ended("", 1, "Error", ""))}, true},
		"a container that was started again":             {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 1}}}, true},
		"a container of which the kubelet lost sight":    {corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("main", 137, "ContainerStatusUnknown", "")}}, true},
		"a running pod whose containers are not known":   {corev1.PodStatus{Phase: corev1.PodRunning}, true},
		"a pod that ended well, by whatever containers":  {corev1.PodStatus{Phase: corev1.PodSucceeded}, true},
		"a pod whose node is lost, of what was seen yet": {corev1.PodStatus{Phase: corev1.PodUnknown, ContainerStatuses: waiting("ContainerCreating", "")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Started(&corev1.Pod{Status: test.status}); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestNeverRan(t *testing.T) {
	unlocated := func(changes ...func(*corev1.ContainerStatus)) []corev1.ContainerStatus {
		s := ended("main", 137, "ContainerStatusUnknown", "")
		for _, change := range changes {
			change(&s)
		}
		return []corev1.ContainerStatus{s}
	}
	collected := []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"}}
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"a pod that its kubelet refused":           {corev1.PodStatus{Reason: "NodeAffinity"}, true},
		"a pod whose volumes were never mounted":   {corev1.PodStatus{ContainerStatuses: unlocated()}, true},
		"one with an init container":               {corev1.PodStatus{InitContainerStatuses: unlocated(), ContainerStatuses: waiting("PodInitializing", "")}, true},
		"one whose init container has run":         {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{ended("init", 0, "Completed", "")}, ContainerStatuses: unlocated()}, false},
		"a container that the kubelet knew":        {corev1.PodStatus{ContainerStatuses: unlocated(func(s *corev1.ContainerStatus) { s.ContainerID = "containerd://1" })}, false},
		"a container that ran and was lost":        {corev1.PodStatus{ContainerStatuses: unlocated(func(s *corev1.ContainerStatus) { s.RestartCount = 1 })}, false},
		"a container with a time of its start":     {corev1.PodStatus{ContainerStatuses: unlocated(func(s *corev1.ContainerStatus) { s.State.Terminated.StartedAt = metav1.Now() })}, false},
		"a container that failed":                  {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended("main", 1, "Error", "")}}, false},
		"a pod that was collected":                 {corev1.PodStatus{Conditions: collected, ContainerStatuses: waiting("ContainerCreating", "")}, false},
		"one of which kubelet said so before that": {corev1.PodStatus{Conditions: collected, ContainerStatuses: unlocated()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			test.status.Phase = corev1.PodFailed
			if got := NeverRan(&corev1.Pod{Status: test.status}); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
	if NeverRan(&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}) {
		t.Error("a pod that may yet run is taken for one that never will")
	}
}
