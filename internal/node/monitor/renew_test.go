package monitor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	staging "github.com/albertofaria/pav/internal/node/stage"
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

// replaced returns a node that was asked to replace account 0 of its volume by account 1, with the account that the PavVolume shows.
func replaced(t *testing.T, shown *int32) *testNode {
	t.Helper()
	n := newNode(t)
	n.PutStage(t, func(stage *pavv1.PavStage) {
		stage.Annotations = map[string]string{pavv1.RestageAnnotation: "1"}
		stage.Status.BucketAccount = new(int32(0))
		n.API.Records = map[string]*pavv1.PavVolume{stage.Spec.VolumeName: {Status: pavv1.PavVolumeStatus{BucketAccount: shown}}}
	})
	n.Attach(t)
	n.API.SetPod(func(pod *corev1.Pod) { pod.Spec.NodeName = "node" })
	return n
}

// The request that the account be replaced, and no other change, brings the check of a stage.
func TestStageEvents_AccountIsReplaced(t *testing.T) {
	n := newNode(t)
	stage := func(asked string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "stage-a", Annotations: map[string]string{pavv1.RestageAnnotation: asked}}}
	}
	events := stageEvents(staging.NewNotifier(), n.Monitor)
	events.OnUpdate(stage("1"), stage("1"))
	events.OnUpdate(stage("1"), stage("2"))
	if name, _ := n.queue.Get(); name != "stage-a" || n.queue.Len() != 0 {
		t.Errorf("%q is checked, and %d more", name, n.queue.Len())
	}
}

// The staging pod of a volume whose account was replaced is stopped, and users are told.
func TestMonitor_AccountIsReplaced(t *testing.T) {
	n := replaced(t, new(int32(1)))
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

// The numbers of accounts began again, or nobody knows of a later one: a new staging pod would have the same.
func TestMonitor_AccountThatNobodyHas(t *testing.T) {
	for name, shown := range map[string]*int32{"the same": new(int32(0)), "none": nil} {
		t.Run(name, func(t *testing.T) {
			n := replaced(t, shown)
			if events := n.look(t); len(events) > 0 || n.API.Pods["stage-1"].DeletionTimestamp != nil {
				t.Errorf("the staging pod was stopped: %q", events)
			}
		})
	}
}
