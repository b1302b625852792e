package monitor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A number that says nothing stops no staging pod.
func TestIsOutdated(t *testing.T) {
	for name, test := range map[string]struct {
		asked string
		has   *int32
		want  bool
	}{
		"an earlier account":        {"2", new(int32(1)), true},
		"the account":               {"2", new(int32(2)), false},
		"a later account":           {"2", new(int32(3)), false},
		"no account yet":            {"2", nil, false},
		"nobody has asked":          {"", new(int32(0)), false},
		"no number":                 {"two", new(int32(0)), false},
		"a number that is too long": {"99999999999", new(int32(0)), false},
	} {
		t.Run(name, func(t *testing.T) {
			stage := &pavv1.PavStage{Status: pavv1.PavStageStatus{BucketAccount: test.has}}
			stage.Annotations = map[string]string{pavv1.RestageAnnotation: test.asked}
			if got := isOutdated(stage); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// The staging pod of a volume whose account was replaced is stopped, and users are told.
func TestMonitor_AccountIsReplaced(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(stage *pavv1.PavStage) {
		stage.Annotations = map[string]string{pavv1.RestageAnnotation: "1"}
		stage.Status.BucketAccount = new(int32(0))
	})
	n.Attach(t)
	n.API.SetPod(func(pod *corev1.Pod) { pod.Spec.NodeName = "node" })
	const words = "AccountReplaced: the account of volume pv was replaced: PaV stops its staging pod on node node, and stages the volume again; " +
		"containers that mount it with mountPropagation HostToContainer get the new one, and all other pods that use it must be restarted"
	want := []string{"PavStage: " + words, "PersistentVolumeClaim default/claim: " + words, "Pod default/client: " + words}
	if diff := cmp.Diff(want, n.look(t)); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	if pod := n.API.Pods["stage-1"]; pod.DeletionTimestamp == nil {
		t.Error("the staging pod was not stopped")
	}
	if events := n.look(t); len(events) > 0 {
		t.Errorf("later, there are the events %q", events)
	}
}
