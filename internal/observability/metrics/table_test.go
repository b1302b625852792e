package metrics

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestTable_FollowsThePrometheusConventions(t *testing.T) {
	name := regexp.MustCompile(`^pav(_[a-z]+)+$`)
	table := Table()
	if !slices.IsSortedFunc(table, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table is not sorted")
	}
	for i, m := range table {
		switch {
		case i > 0 && table[i-1].Name == m.Name:
			t.Errorf("%s is there twice", m.Name)
		case !name.MatchString(m.Name), !strings.HasSuffix(m.Help, "."), len(m.Agents) == 0:
			t.Errorf("%s: bad name, help or agents", m.Name)
		case (m.Type == Counter) != strings.HasSuffix(m.Name, "_total"):
			t.Errorf("%s: a %s", m.Name, m.Type)
		case (m.Type == Histogram) != (len(m.Buckets) > 0):
			t.Errorf("%s: a %s with %d buckets", m.Name, m.Type, len(m.Buckets))
		}
		for _, label := range m.LabelNames() {
			if slices.Contains([]string{"volume", "pod", "claim", "namespace", "handle"}, label) {
				t.Errorf("%s: label %q has no bound", m.Name, label)
			}
		}
	}
}

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
}

// podOf returns a pod that was created after 2 s, ran from 5 s, and ended after 15 s.
func podOf(change func(*corev1.Pod)) *corev1.Pod {
	ended := func(from, to, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			StartedAt: at(int(from)), FinishedAt: at(int(to)), ExitCode: code,
		}}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "create-x", Namespace: "pav-pods", CreationTimestamp: at(2)}}
	pod.Spec.NodeName = "node"
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{ended(5, 6, 0)}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{ended(7, 15, 0), ended(7, 9, 0)}
	if change != nil {
		change(pod)
	}
	return pod
}

func failed(code int32, reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		ended := pod.Status.ContainerStatuses[0].State.Terminated
		ended.ExitCode, ended.Reason = code, reason
	}
}

func TestWorkflows_PartsOfAPodsLife(t *testing.T) {
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		due  *metav1.Time
		want map[string]float64
	}{
		"all parts":                    {pod: podOf(nil), due: new(at(0)), want: map[string]float64{"queue": 2, "start": 3, "run": 10, "result": 2}},
		"a pod that was never in line": {pod: podOf(nil), want: map[string]float64{"start": 3, "run": 10, "result": 2}},
		"clocks disagree":              {pod: podOf(nil), due: new(at(3)), want: map[string]float64{"queue": 0, "start": 3, "run": 10, "result": 2}},
		"one that goes on running": {pod: podOf(func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(7)}}
		}), want: map[string]float64{"start": 3, "run": 12}},
		"a container that was started again": {pod: podOf(func(pod *corev1.Pod) {
			pod.Status.InitContainerStatuses = nil
			pod.Status.ContainerStatuses = pod.Status.ContainerStatuses[:1]
			pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{StartedAt: at(4), FinishedAt: at(5)}
		}), want: map[string]float64{"start": 2, "run": 11, "result": 2}},
		"one that never ran": {pod: podOf(func(pod *corev1.Pod) {
			pod.Status = corev1.PodStatus{Phase: corev1.PodFailed}
		}), due: new(at(1)), want: map[string]float64{"queue": 1}},
	} {
		w := NewWorkflows(nil, time.Now)
		w.now = func() time.Time { return epoch.Add(17*time.Second + 900*time.Millisecond) }
		ref := &pavv1.PodReference{Name: "create-x", Due: test.due}
		w.Succeeded(Pod{Provisioner: "p", Workflow: "create", Ref: ref, Pod: test.pod})
		got := map[string]float64{}
		for _, m := range gather(t, w)[WorkflowDuration.Name] {
			got[m.labels["part"]] = m.sum
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestReasonOf(t *testing.T) {
	named := &pavv1.WorkflowFailure{PodNamespace: "pav-pods", PodName: "create-x"}
	deleted := func(pod *corev1.Pod) { pod.DeletionTimestamp = new(at(9)) }
	for name, test := range map[string]struct {
		failure *pavv1.WorkflowFailure
		pod     *corev1.Pod
		want    string
	}{
		"no pod could be made":              {failure: &pavv1.WorkflowFailure{}, want: ReasonRefused},
		"removed by force":                  {failure: named, want: ReasonVanished},
		"a container failed":                {failure: named, pod: podOf(failed(3, "Error")), want: ReasonExitCode},
		"out of memory":                     {failure: named, pod: podOf(failed(137, "OOMKilled")), want: ReasonOutOfMemory},
		"it ended well, but says junk":      {failure: named, pod: podOf(nil), want: ReasonResult},
		"it runs, but has no volume":        {failure: named, pod: podOf(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }), want: ReasonResult},
		"stopped while it ran":              {failure: named, pod: podOf(func(pod *corev1.Pod) { failed(137, "Error")(pod); deleted(pod) }), want: ReasonStopped},
		"stopped, whatever it made of that": {failure: named, pod: podOf(deleted), want: ReasonStopped},
		"never bound to a node": {failure: named, pod: podOf(func(pod *corev1.Pod) {
			deleted(pod)
			pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
		}), want: ReasonNotStarted},
		"evicted":      {failure: named, pod: podOf(func(pod *corev1.Pod) { failed(137, "Error")(pod); pod.Status.Reason = "Evicted" }), want: ReasonEvicted},
		"too slow":     {failure: named, pod: podOf(func(pod *corev1.Pod) { failed(137, "Error")(pod); pod.Status.Reason = "DeadlineExceeded" }), want: ReasonDeadline},
		"nobody knows": {failure: named, pod: podOf(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }), want: ReasonOther},
	} {
		if got := ReasonOf(test.failure, test.pod); got != test.want || !slices.Contains(reasons, got) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestSeries_GoWithTheirProvisioner(t *testing.T) {
	exists := map[string]bool{"stays": true, "goes": true}
	w, c := NewWorkflows(func(name string) bool { return exists[name] }, time.Now), NewCalls(func(name string) bool { return exists[name] })
	for name := range exists {
		w.Failed(Pod{Provisioner: name, Workflow: "create"}, &pavv1.WorkflowFailure{})
		w.Succeeded(Pod{Provisioner: name, Workflow: "create", Pod: podOf(nil)})
		c.Published(name, time.Second, nil)
		c.Published(name, time.Second, errors.New("no"))
		c.Restaged(name, false)
	}
	count := func() map[string]int {
		of := map[string]int{}
		for _, collector := range []prometheus.Collector{w, c} {
			for _, family := range gather(t, collector) {
				for _, m := range family {
					of[m.labels["provisioner"]]++
				}
			}
		}
		return of
	}
	if diff := cmp.Diff(map[string]int{"stays": 8, "goes": 8}, count()); diff != "" {
		t.Errorf("while both exist (-want +got):\n%s", diff)
	}
	delete(exists, "goes")
	if diff := cmp.Diff(map[string]int{"stays": 8}, count()); diff != "" {
		t.Errorf("when one is gone (-want +got):\n%s", diff)
	}
}

// Where there are no metrics, nothing is counted, also not in those of others.
func TestNil_CountsNothing(t *testing.T) {
	var w *Workflows
	var c *Calls
	pod := podOf(nil)
	count := map[string]func(){
		"a pod that succeeded": func() { w.Succeeded(Pod{Provisioner: "p", Workflow: "create", Pod: pod}) },
		"a failure":            func() { w.Failed(Pod{Provisioner: "p", Workflow: "create", Pod: pod}, &pavv1.WorkflowFailure{}) },
		"a publication":        func() { c.Published("p", 0, nil) },
		"a restaging":          func() { c.Restaged("p", true) },
	}
	for name, count := range count {
		t.Run(name, func(t *testing.T) {
			others := []prometheus.Collector{NewWorkflows(nil, time.Now), NewCalls(nil)}
			func() {
				defer func() {
					if problem := recover(); problem != nil {
						t.Errorf("it panics: %v", problem)
					}
				}()
				count()
			}()
			for _, other := range others {
				if families := gather(t, other); len(families) > 0 {
					t.Errorf("it is counted elsewhere: %v", families)
				}
			}
		})
	}
}

// TestCounters_AgreeWithTheTable holds the types, labels and help that are exported against the table; the
// collectors of gauges have tests of their own.
func TestCounters_AgreeWithTheTable(t *testing.T) {
	w, c := NewWorkflows(nil, time.Now), NewCalls(nil)
	w.Failed(Pod{Provisioner: "p", Workflow: "create", Pod: podOf(failed(1, "Error"))}, &pavv1.WorkflowFailure{PodName: "create-x"})
	c.Published("p", time.Second, nil)
	c.Restaged("p", true)
	for agent, collectors := range map[Agent][]prometheus.Collector{Controller: {w}, Node: {w, c}} {
		got := map[string]bool{}
		for _, collector := range collectors {
			if err := Agrees(collector, agent); err != nil {
				t.Error(err)
			}
			for name := range gather(t, collector) {
				got[name] = true
			}
		}
		for _, m := range Table() {
			if slices.Contains(m.Agents, agent) && m.Type != Gauge && !got[m.Name] {
				t.Errorf("the %s agent does not export %s", agent, m.Name)
			}
		}
	}
}

// sample is what one series of a metric has.
type sample struct {
	labels map[string]string
	sum    float64
}

// gather returns what a collector exports, by metric.
func gather(t *testing.T, c prometheus.Collector) map[string][]sample {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]sample{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range m.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			all[family.GetName()] = append(all[family.GetName()], sample{labels, m.GetHistogram().GetSampleSum() + m.GetCounter().GetValue()})
		}
	}
	return all
}
