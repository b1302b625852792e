package collect

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// ends sets the status that kubelet writes about a second before the phase.
func (n *node) ends(code int32) {
	n.pod.Spec = corev1.PodSpec{NodeName: "node", RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main"}}}
	n.pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}},
	}}
}

func TestReport_TellsOnceOfAPodThatIsOver_AndLeavesItsPav(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	write(t, n.target+"/handle", "h")
	n.ends(0)
	for range 2 {
		must(t, n.Report(t.Context(), podUID))
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
		"a pod that runs":                  {change: func(n *node) { n.pod.Status.Phase = corev1.PodRunning }, uid: podUID},
		"a pod without a /pav here":        {change: func(n *node) { n.ends(0) }, uid: "other"},
		"a pod that is gone":               {change: func(n *node) { n.pod = nil }, uid: podUID},
		"a pod of which was told":          {change: func(n *node) { n.ends(0); n.pod.Annotations = map[string]string{pavv1.ResultAnnotation: "{}"} }, uid: podUID},
		"another pod by now, of that name": {change: func(n *node) { n.ends(0); n.pod.UID = "new" }, uid: podUID},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.publish(t)
			test.change(n)
			must(t, n.Report(t.Context(), test.uid))
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
	if err := n.Report(t.Context(), podUID); !errors.Is(err, ErrBusy) {
		t.Errorf("beside another call: got %v", err)
	}
	release()
	must(t, n.Report(t.Context(), podUID))
	if len(n.results) != 1 {
		t.Errorf("it was told %d times", len(n.results))
	}
	must(t, n.dirs.UnpublishPod(t.Context(), volume, n.target))
}

func TestTrimPod_KeepsWhatDecides(t *testing.T) {
	n := &node{pod: &corev1.Pod{}}
	n.ends(0)
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
