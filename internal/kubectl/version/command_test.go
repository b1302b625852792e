package version

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(component, image, node string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/component": component}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Image: image}}},
	}
}

func TestAgents_AreGroupedByVersion(t *testing.T) {
	controller := pod("controller-agent", "docker.io/x/pav:0.2.0", "n1")
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want []Agent
		skew string
	}{
		"not installed":   {want: []Agent{}, skew: `no agent runs in namespace "storage"`},
		"all the same":    {pods: []corev1.Pod{controller, controller, pod("node-agent", "host:5000/pav:0.2.0@sha256:12", "n2")}, want: []Agent{{Component: "controller-agent", Version: "0.2.0", Pods: 2}, {Component: "node-agent", Version: "0.2.0", Pods: 1}}},
		"another version": {pods: []corev1.Pod{pod("node-agent", "pav:0.3.0", "n1")}, want: []Agent{{Component: "node-agent", Version: "0.3.0", Pods: 1}}, skew: "install that of the agents"},
		"being upgraded": {
			pods: []corev1.Pod{controller, pod("node-agent", "pav:0.2.0", "n2"), pod("node-agent", "pav:0.1.9", "n3"), pod("node-agent", "pav:0.1.9", "n1")},
			want: []Agent{{Component: "controller-agent", Version: "0.2.0", Pods: 1}, {Component: "node-agent", Version: "0.1.9", Pods: 2, Nodes: []string{"n1", "n3"}}, {Component: "node-agent", Version: "0.2.0", Pods: 1, Nodes: []string{"n2"}}},
			skew: "kubectl -n storage rollout status",
		},
		"by digest, and without a tag": {
			pods: []corev1.Pod{pod("controller-agent", "host:5000/pav@sha256:12", "n1"), pod("node-agent", "pav", "n1")},
			want: []Agent{{Component: "controller-agent", Version: "sha256:12", Pods: 1}, {Component: "node-agent", Version: "latest", Pods: 1}}, skew: "agents of several versions run",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compare("0.2.0", "storage", test.pods)
			if diff := cmp.Diff(test.want, got.Agents); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Skew, test.skew) || (got.Skew == "") != (test.skew == "") {
				t.Errorf("got %q, want it to contain %q", got.Skew, test.skew)
			}
		})
	}
}
