package collect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// running returns the pod as a creation pod that runs.
func running() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: podName, UID: podUID, Labels: map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowCreation}}}
	pod.Spec = corev1.PodSpec{NodeName: "node", RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main"}}}
	pod.Status.Phase = corev1.PodRunning
	return pod
}

// over returns the pod with the status that kubelet writes about a second before the phase.
func over(code int32) *corev1.Pod {
	pod := running()
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}},
	}
	return pod
}

func (n *node) ends(code int32) { n.pod = over(code) }

func TestReport_TellsOnceOfAPodThatIsOver_AndLeavesItsPav(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	write(t, n.target+"/handle", "h")
	n.ends(0)
	seen := n.pod.DeepCopy()
	for range 2 {
		must(t, n.Report(t.Context(), seen))
	}
	if diff := cmp.Diff(workflow.Result{Handle: "h"}, n.result(t)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	write(t, n.target+"/handle", "another") // The pod still has it.
	wantFound(t, n, true)
	if len(n.results) != 1 {
		t.Errorf("it was told %d times: %s", len(n.results), n.results)
	}
	n.wantGone(t)
}

func TestReport_TellsNothingOfOtherPods(t *testing.T) {
	for name, test := range map[string]struct {
		change func(n *node)
		uid    types.UID
	}{
		"a pod that runs":                  {change: func(*node) {}, uid: podUID},
		"a pod without a /pav here":        {change: func(n *node) { n.ends(0) }, uid: "other"},
		"a pod that is gone":               {change: func(n *node) { n.pod = nil }, uid: podUID},
		"a pod of which was told":          {change: func(n *node) { n.ends(0); n.pod.Annotations = map[string]string{pavv1.ResultAnnotation: "{}"} }, uid: podUID},
		"another pod by now, of that name": {change: func(n *node) { n.ends(0); n.pod.UID = "new" }, uid: podUID},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.publish(t)
			seen := over(0)
			seen.UID = test.uid
			test.change(n)
			must(t, n.Report(t.Context(), seen))
			if len(n.results) > 0 {
				t.Errorf("it was told: %s", n.results)
			}
			must(t, n.dirs.UnpublishPod(t.Context(), volume, n.target))
		})
	}
}

func TestReport_WaitsForOtherCalls(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	n.ends(1)
	release, err := n.claim(volume)
	must(t, err)
	if err := n.Report(t.Context(), n.pod.DeepCopy()); !errors.Is(err, ErrBusy) {
		t.Errorf("beside another call: got %v", err)
	}
	release()
	must(t, n.Report(t.Context(), n.pod.DeepCopy()))
	if len(n.results) != 1 {
		t.Errorf("it was told %d times", len(n.results))
	}
	must(t, n.dirs.UnpublishPod(t.Context(), volume, n.target))
}

func TestTrimPod_KeepsWhatDecides(t *testing.T) {
	n := &node{pod: over(0)}
	n.pod.Spec.Containers[0].Image = "image"
	n.pod.Annotations = map[string]string{"a": "b"}
	trimmed, err := trimPod(n.pod.DeepCopy())
	must(t, err)
	pod := trimmed.(*corev1.Pod)
	if !isDue(pod) || pod.Spec.Containers[0].Image != "" || len(pod.Annotations) > 0 {
		t.Errorf("trimmed is %+v", pod)
	}
	n.pod.Annotations[pavv1.ResultAnnotation] = "{}"
	trimmed, err = trimPod(n.pod)
	must(t, err)
	if isDue(trimmed.(*corev1.Pod)) {
		t.Error("a pod of which was told is due")
	}
}

// wantQueued waits until a report of the pod is queued.
func (n *node) wantQueued(t *testing.T) {
	t.Helper()
	select {
	case pod := <-n.queued:
		if want := (types.NamespacedName{Namespace: "ns", Name: podName}); pod != want {
			t.Errorf("a report of %s is queued, want %s", pod, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("no report is queued")
	}
}

func TestReport_OfAPodThatCreatesReady_ReadsItsFilesOnce(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	n.pod = running()
	n.AwaitReady(t.Context(), volume, pavdir.Pod{Namespace: "ns", Name: podName, UID: podUID})
	must(t, n.Report(t.Context(), running()))
	write(t, n.target+"/handle", "h")
	must(t, n.Report(t.Context(), running()))
	if len(n.results) > 0 || len(n.queued) > 0 {
		t.Fatalf("before /pav/ready, it was told: %s", n.results)
	}
	write(t, n.target+"/ready", "")
	n.wantQueued(t)
	must(t, n.Report(t.Context(), running()))
	want := workflow.Result{Ready: true, Handle: "h"}
	if diff := cmp.Diff(want, n.result(t)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	write(t, n.target+"/handle", "another")
	must(t, n.Report(t.Context(), over(1)))
	wantFound(t, n, true)
	if len(n.results) != 1 {
		t.Errorf("it was told %d times: %s", len(n.results), n.results)
	}
	n.wantGone(t)
}

// An agent may have been stopped before it could report that.
func TestAwaitReady_OfAPodThatIsReady_QueuesAReport(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	write(t, n.target+"/ready", "")
	n.AwaitReady(t.Context(), volume, pavdir.Pod{Namespace: "ns", Name: podName, UID: podUID})
	n.wantQueued(t)
	must(t, n.dirs.UnpublishPod(t.Context(), volume, n.target))
	n.AwaitReady(t.Context(), volume, pavdir.Pod{Namespace: "ns", Name: podName, UID: podUID})
	if len(n.queued) > 0 {
		t.Error("without a /pav, a report is queued")
	}
}

func TestReport_OfPodsWhoseReadyDoesNotCount(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"a deletion pod":                     func(p *corev1.Pod) { p.Labels[pavv1.WorkflowLabel] = pavv1.WorkflowDeletion },
		"a pod whose container is restarted": func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure },
		"a pod that is being deleted":        func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.publish(t)
			n.pod = running()
			change(n.pod)
			write(t, n.target+"/ready", "")
			must(t, n.Report(t.Context(), running()))
			if isDue(n.pod) || len(n.results) > 0 {
				t.Errorf("it is due: %t, and it was told: %s", isDue(n.pod), n.results)
			}
			must(t, n.dirs.UnpublishPod(t.Context(), volume, n.target))
		})
	}
}

// The agent may have been away when the pod created /pav/ready, and failed.
func TestUnpublish_OfAPodThatWasReady_SaysSo(t *testing.T) {
	for name, report := range map[string]func(t *testing.T, n *node){
		"kubelet takes /pav":  func(t *testing.T, n *node) { t.Helper(); wantFound(t, n, true) },
		"its end is reported": func(t *testing.T, n *node) { t.Helper(); must(t, n.Report(t.Context(), over(7))) },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.publish(t)
			write(t, n.target+"/handle", "h")
			write(t, n.target+"/ready", "")
			n.ends(7)
			report(t, n)
			if diff := cmp.Diff(workflow.Result{Ready: true, Handle: "h"}, n.result(t)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			must(t, n.dirs.UnpublishPod(t.Context(), volume, n.target))
		})
	}
}

func TestReport_GoesPastABrokenRecord(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	n.ends(0)
	broken := filepath.Join(n.kubelet, "plugins", pavv1.Driver, "pods", "csi-"+strings.Repeat("0", 64))
	must(t, os.Mkdir(broken, 0o700))
	write(t, broken+"/pod.json", "{")
	must(t, n.Report(t.Context(), over(0)))
	if len(n.results) != 1 {
		t.Errorf("it was told %d times", len(n.results))
	}
	other := over(0)
	other.UID = "other"
	if err := n.Report(t.Context(), other); err == nil {
		t.Error("a pod that the broken record may be of has no error")
	}
	must(t, os.RemoveAll(broken))
	must(t, n.dirs.UnpublishPod(t.Context(), volume, n.target))
}
