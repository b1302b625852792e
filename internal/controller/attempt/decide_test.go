package attempt

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// decision is an expected Decision: message is a part of its message, or empty if it has none.
type decision struct {
	action  Action
	message string
	after   time.Duration
}

func (want decision) check(t *testing.T, got Decision) {
	t.Helper()
	if got.Action != want.action || got.After != want.after {
		t.Errorf("got %s (%s) after %s, want %s after %s", got.Action, got.Message, got.After, want.action, want.after)
	}
	if !strings.Contains(got.Message, want.message) || (want.message == "") != (got.Message == "") {
		t.Errorf("got message %q, want it to contain %q", got.Message, want.message)
	}
}

func TestDecideQueued(t *testing.T) {
	due := func(seconds int) func(*Attempt) {
		return func(a *Attempt) { a.Ref.Due = new(ago(seconds)) }
	}
	tests := map[string]struct {
		state *state
		want  decision
	}{
		"no pod is recorded":       {state: &state{Attempt{Now: noon}}, want: decision{action: Run}},
		"the pod is recorded":      {state: intended(), want: decision{action: Run}},
		"it waits for a slot":      {state: intended().with(due(60)), want: decision{action: Run, after: 9 * time.Minute}},
		"the clock was set back":   {state: intended().with(due(-3600)), want: decision{action: Run, after: 10 * time.Minute}},
		"it has waited for long":   {state: intended().with(due(600)), want: decision{action: Run, message: "pod pav-pods/pod has waited for more than 10m0s for a slot"}},
		"it has waited for longer": {state: intended().with(due(6000)), want: decision{action: Run, message: "--max-pods-per-provisioner"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.want.check(t, test.state.DecideQueued()) })
	}
}

func TestDecideRunning(t *testing.T) {
	reportedAs := func(reason string) func(*Attempt) {
		return func(a *Attempt) { a.Reported = reason }
	}
	retried := func(a *Attempt) { a.Retried = true }
	tests := map[string]struct {
		state *state
		want  decision
	}{
		"it runs":                                        {state: intended().pod(20, running), want: decision{action: Wait, after: 10 * time.Second}},
		"it runs, and the clock is behind":               {state: intended().pod(-99, running), want: decision{action: Wait, after: 30 * time.Second}},
		"it has run for some time":                       {state: intended().pod(60, running), want: decision{action: Wait, message: "it has run for more than 30s; see kubectl logs -n pav-pods pod", after: 9 * time.Minute}},
		"a retry was requested after it was reported":    {state: intended().with(reportedAs(pavv1.ReasonPodRunsLong), retried).pod(60, running), want: decision{action: Stop, message: "pod pav-pods/pod is stopped, as a retry was requested"}},
		"a retry was requested after it could not start": {state: intended().with(reportedAs(ReasonNotStarted), retried).pod(60, imageFails), want: decision{action: Stop, message: "pod pav-pods/pod is stopped, as a retry was requested"}},
		"a retry was requested before it was reported":   {state: intended().with(retried).pod(20, running), want: decision{action: Wait, after: 10 * time.Second}},
		"it has run for long":                            {state: intended().pod(600, running), want: decision{action: Wait, message: "it has run for more than 10m0s; see kubectl logs -n pav-pods pod --all-containers, or stop it with kubectl pav retry pavvolume/pvc-1"}},
		"it runs, and others wait for its slot":          {state: intended().with(contended).pod(500, running), want: decision{action: Wait, message: "more than 30s", after: 100 * time.Second}},
		"it runs after it could not start":               {state: intended().with(reportedAs(ReasonNotStarted)).pod(20, running), want: decision{action: Wait, message: "pod pav-pods/pod is creating the volume", after: 10 * time.Second}},
		"it starts":                                      {state: intended().pod(1), want: decision{action: Wait, after: 29 * time.Second}},
		"a cause may pass":                               {state: intended().pod(1, imageFails), want: decision{action: Wait, after: 3 * time.Second}},
		"its image cannot be pulled":                     {state: intended().pod(5, imageFails), want: decision{action: Wait, message: `waiting, as pod pav-pods/pod, container "main": ErrImagePull: no such image`, after: 10 * time.Second}},
		"its image cannot be pulled for an hour":         {state: intended().pod(3600, imageFails), want: decision{action: Wait, message: "ErrImagePull", after: 5 * time.Minute}},
		"others have waited for its slot for some time":  {state: intended().with(contended).pod(100, imageFails), want: decision{action: Wait, message: "ErrImagePull", after: 200 * time.Second}},
		"others have waited for its slot for long":       {state: intended().with(contended).pod(300, imageFails), want: decision{action: Stop}},
		"it is not scheduled":                            {state: intended().pod(5, unscheduled), want: decision{action: Wait, message: "waiting, as pod pav-pods/pod is not scheduled: 0/2 nodes are available", after: 10 * time.Second}},
		"it is not scheduled for some time":              {state: intended().pod(100, unscheduled), want: decision{action: Wait, message: "not scheduled", after: 200 * time.Second}},
		"it may not fit on the selected node":            {state: intended().with(selectedNode).pod(6, unscheduled), want: decision{action: Wait, message: "not scheduled", after: 9 * time.Second}},
		"it does not fit on the selected node":           {state: intended().with(selectedNode).pod(15, unscheduled), want: decision{action: Stop}},
		"no kubelet has seen it for some time":           {state: intended().pod(31), want: decision{action: Wait, message: "pod pav-pods/pod has not started after 30s; see kubectl describe pod -n pav-pods pod", after: 269 * time.Second}},
		"no kubelet has seen it for long":                {state: intended().pod(300), want: decision{action: Stop, message: "is given up"}},
		"a mount fails for some time":                    {state: intended().pod(299, mountFails), want: decision{action: Wait, message: "has not started", after: time.Second}},
		"a mount fails for long":                         {state: intended().pod(300, mountFails), want: decision{action: Stop, message: `pod pav-pods/pod has not started on node "n1" within 5m0s and is given up; the next one prefers other nodes`}},
		"a mount fails, counted from the binding":        {state: intended().pod(9000, mountFails, bound(299)), want: decision{action: Wait, message: "has not started", after: time.Second}},
		"its image is being pulled":                      {state: intended().pod(9000, pulling), want: decision{action: Wait, message: "its images are being pulled, or its containers created", after: 5 * time.Minute}},
		"its image is being pulled, and others wait":     {state: intended().with(contended).pod(1799, pulling), want: decision{action: Wait, message: "its images are being pulled", after: 5 * time.Minute}},
		"others have waited for the pull of its image":   {state: intended().with(contended).pod(1800, pulling), want: decision{action: Stop}},
		"kubelet gives no cause":                         {state: intended().pod(9000, seen), want: decision{action: Wait, message: "has not started", after: 5 * time.Minute}},
		"kubelet gives no cause, and others wait":        {state: intended().with(contended).pod(300, seen), want: decision{action: Stop}},
		"it crashes": {state: intended().pod(60, crashes), want: decision{action: Wait, message: "CrashLoopBackOff", after: 240 * time.Second}},
		"it crashes, and may have done much, for others": {state: intended().with(contended).pod(600, crashes), want: decision{action: Wait, message: "CrashLoopBackOff", after: 5 * time.Minute}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.want.check(t, test.state.DecideRunning()) })
	}
}

func TestDecideStopping(t *testing.T) {
	tests := map[string]struct {
		state *state
		want  decision
	}{
		"its grace period has just ended": {state: intended().pod(9, running, deleted(1, 0)), want: decision{action: Wait, after: 9 * time.Second}},
		"its grace period has not ended":  {state: intended().pod(9, running, deleted(-30, 30)), want: decision{action: Wait, after: 40 * time.Second}},
		"the clock is behind":             {state: intended().pod(9, running, deleted(-3600, 30)), want: decision{action: Wait, after: 40 * time.Second}},
		"kubelet does not confirm":        {state: intended().pod(99, running, deleted(20, 0)), want: decision{action: Wait, message: `waiting for kubelet on node "n1" to confirm that pod pav-pods/pod has ended`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.want.check(t, test.state.DecideStopping()) })
	}
}

func TestDecideReporting(t *testing.T) {
	collected := func(seconds int) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", LastTransitionTime: ago(seconds)})
		}
	}
	const waiting = `waiting for the agent on node "n1" to report what pod pav-pods/pod left in /pav`
	tests := map[string]struct {
		state *state
		want  decision
	}{
		"it has just ended":               {state: intended().pod(9, ended(corev1.PodSucceeded, 1)), want: decision{action: Wait, after: 5 * time.Second}},
		"it ended some time ago":          {state: intended().pod(9999, ended(corev1.PodSucceeded, 999)), want: decision{action: Wait, message: waiting}},
		"the garbage collector ended it":  {state: intended().pod(9999, ended(corev1.PodFailed, 999), collected(60)), want: decision{action: Wait, message: waiting, after: 9 * time.Minute}},
		"the clock is behind":             {state: intended().pod(9999, ended(corev1.PodFailed, 999), collected(-500)), want: decision{action: Wait, message: waiting, after: 10 * time.Minute}},
		"the garbage collector, long ago": {state: intended().pod(9999, ended(corev1.PodFailed, 999), collected(999)), want: decision{action: Wait, message: waiting, after: 5 * time.Second}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.want.check(t, DecideReporting(noon, test.state.Pod())) })
	}
}

func TestCannotStart(t *testing.T) {
	tests := map[string]struct {
		state             *state
		cannotStart, hung bool
	}{
		"runs":                             {state: intended().pod(600, running)},
		"has just been created":            {state: intended().pod(29)},
		"no kubelet has seen it":           {state: intended().pod(30), cannotStart: true, hung: true},
		"a volume cannot be mounted":       {state: intended().pod(30, mountFails), cannotStart: true, hung: true},
		"has just been bound":              {state: intended().pod(600, mountFails, bound(29))},
		"its image is being pulled":        {state: intended().pod(30, pulling), cannotStart: true},
		"its image cannot be pulled":       {state: intended().pod(1, imageFails), cannotStart: true},
		"has no node":                      {state: intended().pod(1, unscheduled), cannotStart: true},
		"its kubelet gives no cause":       {state: intended().pod(30, seen), cannotStart: true},
		"crashes, and may have done a lot": {state: intended().pod(600, crashes)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := test.state.Pod()
			if got := CannotStart(noon, pod); got != test.cannotStart {
				t.Errorf("cannot start: got %t", got)
			}
			if got := IsHung(noon, pod); got != test.hung {
				t.Errorf("hangs on its node: got %t", got)
			}
		})
	}
}
