package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

// slots gives the node a number of pod slots.
func (n *node) slots(t *testing.T, number int64) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Node}}
	if err := n.c.Admin.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	before := node.DeepCopy()
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(number, resource.DecimalSI)}
	if err := n.c.Admin.Status().Patch(t.Context(), node, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// occupy puts a pod of a phase on the node.
func (n *node) occupy(t *testing.T, name string, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	pod := mustCreate(t, n.c, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: n.Node + "-" + name},
		Spec:       corev1.PodSpec{NodeName: n.Node, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	})
	t.Cleanup(func() { removeNow(t, n.c, pod) })
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status": {"phase": %q}}`, phase))
	if err := n.c.Admin.Status().Patch(t.Context(), pod, patch); err != nil {
		t.Fatal(err)
	}
	return pod
}

// A node without a free pod slot gets no staging pod, as another pod would be removed for it: the claim's events and the
// call's error say so, the call waits, and uses a slot that becomes free. Volumes are unstaged on a full node.
func TestNode_FullNode_GetsNoStagingPod(t *testing.T) {
	n := newNode(t, func(_ context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() == pavv1.WorkflowStaging && os.Mkdir(filepath.Join(pod.Pav, "volume"), 0o755) != nil {
			return 1
		}
		return 0
	})
	n.slots(t, 2)
	n.occupy(t, "first", corev1.PodRunning)
	waiting := n.occupy(t, "second", corev1.PodPending)
	n.occupy(t, "completed", corev1.PodSucceeded)
	n.occupy(t, "failed", corev1.PodFailed)
	n.run(t)
	v := n.volume(t, "served")
	ctx, cancel := context.WithTimeout(lasting(t), deadline)
	defer cancel()

	eventually(t, "a call says that the node is full", func(ctx context.Context) (bool, string) {
		err := n.Stage(ctx, v)
		is := status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "node "+n.Node+" is full: all of its 2 pod slots are taken")
		return is, fmt.Sprint(err)
	})
	claim := &corev1.PersistentVolumeClaim{}
	if err := n.c.Admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: v.Name}, claim); err != nil {
		t.Fatal(err)
	}
	n.wantOneEvent(t, claim, "FailedMount", "is full")
	staged := make(chan error, 1)
	go func() { staged <- n.Stage(ctx, v) }()
	exists(t, n.c, &n.stages(t)[0], "says that the node is full", func(s *pavv1.PavStage) bool {
		return len(s.Status.Conditions) == 1 && strings.Contains(s.Status.Conditions[0].Message, "is full") && s.Status.StagingPod == nil
	})
	n.wantRuns(t, v, map[string]int{})
	removeNow(t, n.c, waiting)
	if err := <-staged; err != nil {
		t.Errorf("the call that waited for a slot: %v", err)
	}
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging))
	n.wantOneEvent(t, claim, "FailedMount", "is full")

	n.occupy(t, "third", corev1.PodRunning)
	n.unstage(t, v)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
	n.checkLeft(t)
}

// wantOneEvent waits for an event of the node's agent on an object, and checks that it was not repeated.
func (n *node) wantOneEvent(t *testing.T, object client.Object, reason, message string) {
	t.Helper()
	eventually(t, fmt.Sprintf("there is one event %s: %s", reason, message), func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		if err := n.c.Admin.List(ctx, list, client.MatchingFields{"involvedObject.uid": string(object.GetUID())}); err != nil {
			return false, err.Error()
		}
		found := 0
		for i := range list.Items {
			if e := &list.Items[i]; e.Reason == reason && strings.Contains(e.Message, message) {
				found += int(max(e.Count, 1))
			}
		}
		if found > 1 {
			t.Errorf("it has %d such events", found)
		}
		return found > 0, fmt.Sprintf("%+v", list.Items)
	})
}
